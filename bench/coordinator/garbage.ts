import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What is in use of this process's heap, with all garbage gone. Bytes. */
export function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}
