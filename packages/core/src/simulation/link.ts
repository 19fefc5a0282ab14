import type { Random } from './random.ts'
import type { Faults } from './scenario.ts'
import type { Timeline } from './timeline.ts'

/** A way for messages that loses, delays, doubles and reorders them. */
export interface Link {
  send(deliver: () => void): void
  /** Whether any message was ever lost: only then is somebody else allowed to clean up. */
  readonly lost: boolean
}

export function createLink(timeline: Timeline, random: Random, faults: Faults): Link {
  let lost = false
  const delayMs = () =>
    random.chance(faults.messageLate) ? random.between(100, 40_000) : random.between(0.1, 5)
  return {
    get lost() {
      return lost
    },
    send(deliver) {
      if (random.chance(faults.messageLost)) {
        lost = true
        return
      }
      timeline.after(delayMs(), deliver)
      if (random.chance(faults.messageDoubled)) timeline.after(delayMs(), deliver)
    },
  }
}
