/** One run of a task by somebody whose result is known beforehand. */
import { OUTCOME_RULES } from '@sandlot/core'
import type { ResultRow } from 'sandlot'

/** `gold` solves the task, `null` does nothing. */
export const TRIAL_ROLES = ['gold', 'null'] as const
export type TrialRole = (typeof TRIAL_ROLES)[number]

/**
 * What a trial says of its task. `pass`, `fail`: a verdict. `fault`: none, by a fault of the task (its set-up or its grader failed).
 * `nothing`: none, by no doing of the task's.
 */
export type TrialVerdict = 'pass' | 'fail' | 'fault' | 'nothing'

export interface Trial {
  readonly role: TrialRole
  readonly verdict: TrialVerdict
  /** null where there is none of the name that is asked for. */
  readonly score: number | null
  /** What came of it, for a person. */
  readonly what: string
  readonly agentMs: number
  readonly gradeMs: number
}

export interface PassRule {
  /** From this on a task is solved. */
  readonly reward: number
  /** Which of several it is. Default: the one that is called `reward`. */
  readonly name?: string
}

type Row = Pick<ResultRow, 'outcome' | 'valid' | 'reward' | 'rewards' | 'error' | 'phases'>

export function trialOf(role: TrialRole, row: Row, pass: PassRule): Trial {
  const score = scoreOf(row, pass.name)
  const { agentMs, gradeMs } = row.phases
  return { role, score, ...judged(row, score, pass), agentMs, gradeMs }
}

function scoreOf({ reward, rewards }: Row, name: string | undefined): number | null {
  if (name === undefined) return reward ?? rewards?.reward ?? null
  return rewards?.[name] ?? (name === 'reward' ? reward : null)
}

function judged(
  { outcome, valid, rewards, error }: Row,
  score: number | null,
  { reward: least, name = 'reward' }: PassRule,
): Pick<Trial, 'verdict' | 'what'> {
  const because = error === null ? '' : `: ${error}`
  if (valid && score !== null) {
    const ended = outcome === 'graded' ? '' : `${outcome}, `
    return { verdict: score >= least ? 'pass' : 'fail', what: `${ended}${name} ${score}` }
  }
  if (valid) {
    const others = Object.keys(rewards ?? {}).join(', ') || 'none'
    return { verdict: 'nothing', what: `it gives no reward called ${name} (it gives ${others})` }
  }
  return { verdict: isOfTask(outcome) ? 'fault' : 'nothing', what: `${outcome}${because}` }
}

/** Of an outcome that is no sample: whether the task is to blame. Whoever stops an episode, or loses its sandbox, is not the task. */
function isOfTask(outcome: ResultRow['outcome']): boolean {
  const { fault } = OUTCOME_RULES[outcome]
  return outcome !== 'model_error' && (fault === 'caller' || fault === 'workload')
}
