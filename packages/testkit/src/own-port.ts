import { once } from 'node:events'
import { createServer } from 'node:net'
import { workerNumber } from './config.ts'

/** Below those that the kernel gives to connections, and to whoever listens on any. */
const LOWEST = 12_000
const SHARES = 20
const PORTS_EACH = 1_000

let next = Math.floor(Math.random() * PORTS_EACH)

/**
 * A free port for a daemon that is started again on it: nobody takes it in between. Test processes that run side by side take theirs from
 * shares of their own, and none takes one twice.
 */
export async function ownPort(): Promise<number> {
  for (;;) {
    next = (next + 1) % PORTS_EACH
    const port = LOWEST + (workerNumber % SHARES) * PORTS_EACH + next
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
