import type { Outcome } from '@sandlot/protocol'
import type { Budget } from '../outcome/rules.ts'
import type { SandboxFate } from '../run/input.ts'
import type { Episode, Run } from '../run/run.ts'
import type { Ending } from './ending.ts'
import type { EpisodePhase } from './phase.ts'
import { settle } from './settle.ts'

/** The end of an attempt whose sandbox died in `phase`. */
export function endingOfFate(
  run: Run,
  episode: Episode,
  phase: EpisodePhase,
  fate: SandboxFate,
): Ending {
  const { outcome, budget } = outcomeOfFate(run, phase, fate)
  const cause = [SENTENCES[fate.cause], fate.evidence]
  return settle(run, episode, { outcome, cause, ...(budget ? { budget } : {}) })
}

/**
 * The end that a recorded fate puts in the place of one that was decided without knowing it, or
 * undefined where that one stands: the sandbox died after it, or it already speaks of no sample
 * that a worker, a clock or a grader vouched for.
 */
export function overruledBy(run: Run, episode: Episode, fate: SandboxFate): Ending | undefined {
  const attempt = episode.current
  const outcome = attempt?.ending?.outcome
  if (!attempt?.endedIn || !outcome || !VOUCHED.has(outcome)) return undefined
  if (fate.diedAtMs !== undefined && fate.diedAtMs > episode.phaseAtMs) return undefined
  return endingOfFate(run, episode, attempt.endedIn, fate)
}

const SENTENCES: Readonly<Record<SandboxFate['cause'], string>> = {
  oom_limit: 'the sandbox went over its own memory limit',
  oom_host: 'the machine ran out of memory',
  lost: 'the sandbox was lost',
  stopped: 'the sandbox was stopped by a person',
  lifetime: 'the lifetime of the sandbox was over',
}

/** What can be said in good faith while the sandbox is dead already. */
const VOUCHED: ReadonlySet<Outcome> = new Set([
  'graded',
  'agent_timeout',
  'limit',
  'episode_error',
  'setup_error',
  'model_error',
  'grade_error',
  'grade_timeout',
])

function outcomeOfFate(
  run: Run,
  phase: EpisodePhase,
  fate: SandboxFate,
): { outcome: Outcome; budget?: Budget } {
  if (fate.cause === 'stopped' || fate.cause === 'lifetime') return { outcome: 'cancelled_user' }
  const ours = fate.cause !== 'oom_limit'
  switch (phase) {
    case 'grade_ready':
    case 'grade_offered':
    case 'grading':
      // Without its sandbox a grade can't be tried again alone; another attempt is paid only where
      // the loss was no doing of the grader.
      return ours ? { outcome: 'grade_error', budget: 'infra' } : { outcome: 'grade_error' }
    case 'agent':
    case 'model':
      return { outcome: ours ? 'infra_lost' : 'sandbox_oom' }
    default:
      // Before the agent began there is no policy to blame: what ate the memory was the set-up.
      return { outcome: !ours && run.policy.setup ? 'setup_error' : 'infra_lost' }
  }
}
