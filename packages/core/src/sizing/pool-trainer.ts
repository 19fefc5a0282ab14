import type { InputBody } from '../run/input.ts'
import { createRandom } from '../simulation/random.ts'
import type { Timeline } from '../simulation/timeline.ts'
import { drawMs } from './latency.ts'
import type { TrainerSetting } from './pool-setting.ts'

/** What a trainer can take: one group, or one result. */
export interface Ready {
  /** With which version of the policy the results began. */
  readonly versions: readonly number[]
}

/** One step of training, from the moment the trainer asked for its batch. */
export interface BatchTaken {
  readonly waitedMs: number
  readonly stepMs: number
  /** By how many versions the results lagged behind the policy, as they were taken. */
  readonly lags: readonly number[]
}

/** It takes a batch, trains, sets the next version of the policy, and asks again, until the run is over and nothing is left. */
export interface PoolTrainer {
  readonly batches: readonly BatchTaken[]
  /** Results that were too old as they were read. */
  readonly stale: number
  put(ready: Ready): void
  /** A group that has failed: it is read, and not taken. */
  pass(): void
  /** Nothing more comes. */
  end(): void
}

export interface PoolTrainerOptions {
  readonly setting: TrainerSetting
  readonly seed: number
  readonly reads: 'rows' | 'groups'
  readonly maxLag: number | null
  readonly timeline: Timeline
  tell(input: InputBody): void
}

export function createPoolTrainer(options: PoolTrainerOptions): PoolTrainer {
  const { setting, reads, maxLag, timeline, tell } = options
  const random = createRandom(options.seed)
  const batches: BatchTaken[] = []
  let waiting: Ready[] = []
  let version = 0
  let askedMs: number | null = timeline.nowMs
  let busyMs = 0
  let seen = 0
  let read = 0
  let stale = 0
  let ended = false

  function take(): void {
    if (askedMs === null) return
    const usable = waiting.filter(({ versions }) => !isStale(versions))
    stale += waiting.length - usable.length
    waiting = usable
    const count = Math.min(setting.batch, waiting.length)
    // Who waits for more has read all that there is, the too old ones too.
    if (count === 0 || (count < setting.batch && !ended)) {
      noteRead(seen)
      return
    }
    const batch = waiting.splice(0, count)
    const waitedMs = timeline.nowMs - askedMs
    const stepMs = drawMs(setting.step, random)
    const lags = batch.flatMap(({ versions }) => versions.map((began) => version - began))
    batches.push({ waitedMs, stepMs, lags })
    askedMs = null
    tell({ type: 'reading', read: reads, waitedMs, busyMs, taken: count, pages: 1 })
    noteRead(seen - waiting.length)
    timeline.after(stepMs, () => {
      busyMs = stepMs
      askedMs = timeline.nowMs
      tell({ type: 'policy_version_set', version: ++version })
      take()
    })
  }

  /** The furthest that was read: nothing is unread again. */
  function noteRead(count: number): void {
    if (count <= read) return
    read = count
    tell(
      reads === 'rows'
        ? { type: 'results_read', rows: count }
        : { type: 'groups_read', groups: count },
    )
  }

  function isStale(versions: readonly number[]): boolean {
    return maxLag !== null && versions.some((began) => version - began > maxLag)
  }

  return {
    batches,
    get stale() {
      return stale
    },
    put(ready) {
      seen++
      waiting.push(ready)
      timeline.after(0, take)
    },
    pass() {
      seen++
      timeline.after(0, take)
    },
    end() {
      ended = true
      timeline.after(0, take)
    },
  }
}
