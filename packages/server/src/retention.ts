import type { Clock } from '@sandlot/engine'
import type { Logger } from 'pino'
import type { Coordinator } from './coordinator/coordinator.ts'
import { SERVER_LIMITS } from './limits.ts'

export interface RetentionParts {
  readonly coordinator: Pick<Coordinator, 'deleteOldRuns'>
  readonly clock: Clock
  readonly log: Logger
  /** How long a run that is over stays, where it says nothing itself; undefined: until somebody deletes it. */
  readonly retainMs: number | undefined
}

/**
 * Deletes now and then, until disposed, runs that are over for longer than they are kept: a bounded number a look, the next look at once
 * where there are more. Their contents go with the collection of blobs, their records with that of the engine.
 */
export function keepRetention({ coordinator, clock, log, retainMs }: RetentionParts): Disposable {
  let over = false
  // Not at once: a clock that is wrong at the start of its machine is mostly set right soon.
  let cancel = clock.after(SERVER_LIMITS.retainEveryMs, look)
  function look(): void {
    void deleteOld()
  }
  async function deleteOld(): Promise<void> {
    let deleted = 0
    try {
      deleted = await coordinator.deleteOldRuns(retainMs)
      if (deleted > 0) log.info({ runs: deleted }, 'runs are deleted that are over for long')
    } catch (err) {
      if (!over) log.warn({ err }, 'old runs could not be deleted; tried again')
    }
    if (!over) cancel = clock.after(deleted > 0 ? 0 : SERVER_LIMITS.retainEveryMs, look)
  }
  return {
    [Symbol.dispose]() {
      over = true
      cancel()
    },
  }
}
