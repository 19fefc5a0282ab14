import type { Clock } from '@sandlot/engine'
import { SERVER_LIMITS } from '../limits.ts'
import type { NodeSandboxes } from './sandboxes.ts'

/** Looks now and then for sandboxes past their time and ends them, a bounded number a look, until disposed. */
export function reapPastTime(sandboxes: NodeSandboxes, clock: Clock): Disposable {
  let cancel = clock.after(SERVER_LIMITS.reapEveryMs, look)
  function look(): void {
    let reaps = 0
    for (const entry of sandboxes.entries.values()) {
      const why = entry.pastTime(clock.now())
      if (why === undefined) continue
      void sandboxes.end(entry.id, { kind: 'expired', detail: why })
      reaps += 1
      if (reaps === SERVER_LIMITS.reapsAtOnce) break
    }
    cancel = clock.after(SERVER_LIMITS.reapEveryMs, look)
  }
  return { [Symbol.dispose]: () => cancel() }
}
