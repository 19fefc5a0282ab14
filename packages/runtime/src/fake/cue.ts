import { DriverError, type Wait } from '../driver.ts'
import { unlessAborted } from '../unless-aborted.ts'

/** What a start or a checkout does instead of succeeding: fail, or wait until its signal aborts. */
export type FakeCue = 'fail' | 'hang' | undefined

export async function obey(cue: FakeCue, wait: Wait): Promise<void> {
  wait.signal?.throwIfAborted()
  if (cue === 'hang') await unlessAborted(wait.signal, new Promise(() => {}))
  if (cue === 'fail') {
    throw new DriverError('create_failed', 'the fake driver fails on cue', { hint: 'try again' })
  }
}
