import type { Clock } from '@sandlot/engine'

/** The time of one command, which stands while its model is called. */
export interface StepClock {
  /** Calls `due` once so much time has gone by, until what it gives is disposed. */
  start(forMs: number, due: () => void): Disposable
  /** A call of the model began. */
  stand(): void
  /** No call is under way any more. */
  goOn(): void
}

export function createStepClock(clock: Clock): StepClock {
  let running: { leftMs: number; readonly due: () => void } | undefined
  let stands = false
  let sinceMs = 0
  let cancel = () => {}

  function go() {
    if (running === undefined || stands) return
    sinceMs = clock.now()
    cancel = clock.after(running.leftMs, running.due)
  }

  return {
    start(forMs, due) {
      running = { leftMs: forMs, due }
      go()
      return {
        [Symbol.dispose]() {
          cancel()
          running = undefined
        },
      }
    },
    stand() {
      if (stands) return
      stands = true
      cancel()
      if (running) running.leftMs = Math.max(0, running.leftMs - (clock.now() - sinceMs))
    },
    goOn() {
      if (!stands) return
      stands = false
      go()
    },
  }
}
