import type { RunPolicy } from './policy.ts'
import type { Episode, Run } from './run.ts'

/** The deadlines that hold for an episode: its task's own, else the run's. */
export function timeoutsOf(run: Run, { own }: Pick<Episode, 'own'>): RunPolicy['timeoutMs'] {
  const { timeoutMs } = run.policy
  return own?.timeoutMs ? { ...timeoutMs, ...own.timeoutMs } : timeoutMs
}
