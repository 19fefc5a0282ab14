import type { Random } from '../simulation/random.ts'
import type { Timeline } from '../simulation/timeline.ts'
import { drawMs } from './latency.ts'
import type { ModelSetting } from './pool-setting.ts'

/** A model that answers so many at once; who comes then waits in line. */
export interface ModelServer {
  ask(random: Random, answered: (ok: boolean) => void): void
}

interface Asking {
  readonly random: Random
  readonly answered: (ok: boolean) => void
}

export function createModelServer(timeline: Timeline, setting: ModelSetting): ModelServer {
  const line = new Set<Asking>()
  let busy = 0

  function begin({ random, answered }: Asking): void {
    busy++
    const ok = !random.chance(setting.failures)
    timeline.after(drawMs(setting.latency, random), () => {
      busy--
      const [next] = line
      if (next) {
        line.delete(next)
        begin(next)
      }
      answered(ok)
    })
  }

  return {
    ask(random, answered) {
      const asking = { random, answered }
      if (busy < (setting.slots ?? Number.POSITIVE_INFINITY)) begin(asking)
      else line.add(asking)
    },
  }
}
