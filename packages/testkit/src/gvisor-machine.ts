import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type GvisorOptions, gvisorOptions, probeMachine } from '@sandlot/runtime'
import { cacheDirectory } from './config.ts'

export interface GvisorMachine {
  /** For a driver of its own: nothing else on this machine uses its state directory. */
  readonly options: GvisorOptions
}

/** This machine's gVisor for tests, or the reason why it has none. */
export async function gvisorMachine(): Promise<GvisorMachine | { readonly reason: string }> {
  const options = gvisorOptions({
    stateDirectory: `/run/sandlot-test-${randomBytes(4).toString('hex')}`,
    dataDirectory: join(cacheDirectory, 'test-data'),
  })
  const findings = await probeMachine(options, undefined)
  const missing = findings.filter(({ ok, required }) => required && !ok)
  if (missing.length === 0) return { options }
  return {
    reason: missing.map(({ name, found, mend }) => `${name}: ${found} (${mend})`).join('; '),
  }
}
