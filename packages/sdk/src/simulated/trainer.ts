import { createRandom } from '@sandlot/core/random'
import { refuseUnknown } from '../connection/unknown-option.ts'
import type { Run } from '../rollout/run.ts'
import { durations, pass } from './durations.ts'

export interface SimulatedTrainerOptions {
  /** How long a step takes: `'20s'`, or a distribution as of `simulatedModel`. */
  readonly step: string
  /** Default 0. */
  readonly seed?: number
  /** Version of the policy that the first step begins with, as a checkpoint has it. Default 0. */
  readonly version?: number
  readonly signal?: AbortSignal
}

/** Steps of training that take their time and learn nothing. */
export interface SimulatedTrainer {
  /** Of the policy, after the last step. */
  readonly version: number
  /** Lets a step pass, and says to the run with what attempts begin from then on. */
  step(run: Pick<Run, 'setPolicyVersion'>): Promise<number>
}

export function simulatedTrainer(options: SimulatedTrainerOptions): SimulatedTrainer {
  refuseUnknown(options, ['step', 'seed', 'version', 'signal'])
  const { seed = 0, signal } = options
  const takesMs = durations('step', options.step)
  const random = createRandom(seed)
  let version = options.version ?? 0
  return {
    get version() {
      return version
    },
    async step(run) {
      await pass(takesMs(random), signal)
      version++
      await run.setPolicyVersion(version, signal ? { signal } : {})
      return version
    },
  }
}
