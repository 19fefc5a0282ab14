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
 * undefined where that one stands. Whether the sandbox died before or after its worker spoke is not
 * asked: clocks of two machines can't tell, and another attempt is cheaper than a wrong reward.
 */
export function overruledBy(run: Run, episode: Episode, fate: SandboxFate): Ending | undefined {
  const attempt = episode.current
  if (!attempt?.endedIn || !attempt.ending?.outcome) return undefined
  const { ending, endedIn } = attempt
  if (ending.outcome === null || !VOUCHED.has(ending.outcome)) return undefined
  // Proven is that it lived, not that it reached what it needed.
  if (fate.cause !== 'cut_off' && ending.next === 'final' && ending.proven) return undefined
  return endingOfFate(run, episode, endedIn, fate)
}

/** Its node gave no answer to any release: nobody can say that the sandbox lived when it ended. */
export const UNKNOWN_FATE: SandboxFate = {
  cause: 'lost',
  evidence: 'its end was not confirmed by its node',
}

const SENTENCES: Readonly<Record<SandboxFate['cause'], string>> = {
  oom_limit: 'the sandbox went over its own memory limit',
  oom_host: 'the machine ran out of memory',
  lost: 'the sandbox was lost',
  cut_off: 'the sandbox was cut off from its network',
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
  // What broke in one phase may have its effect in another.
  if (fate.cause === 'cut_off') return { outcome: 'infra_lost' }
  const ours = fate.cause !== 'oom_limit'
  switch (phase === 'grading' && fate.byEpisode ? 'grade_offered' : phase) {
    case 'grade_ready':
    case 'grade_offered':
      // Nothing of a grader has run: what went over the limit was the episode.
      if (!ours) return { outcome: 'sandbox_oom' }
      return { outcome: 'grade_error', budget: 'infra' }
    case 'grading':
      // Without its sandbox a grade can't be tried again alone; another attempt is paid only where
      // the loss was no doing of the grader.
      return ours ? { outcome: 'grade_error', budget: 'infra' } : { outcome: 'grade_error' }
    case 'agent':
    case 'model':
    case 'stopping':
      return { outcome: ours ? 'infra_lost' : 'sandbox_oom' }
    default:
      // Before the agent began there is no policy to blame: what ate the memory was the set-up.
      return { outcome: !ours && run.policy.setup ? 'setup_error' : 'infra_lost' }
  }
}
