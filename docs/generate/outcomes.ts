import { OUTCOMES, RETRY_DEFAULTS } from '@sandlot/protocol'
import { fillBlock } from './blocks.ts'
import type { Document } from './document.ts'
import { OUTCOME_RULES, type OutcomeRule } from './inside.ts'
import { code, table } from './markdown.ts'

/** What ended the episode, as a user would say it. Total by type: a new outcome needs its words. */
const CAUSES = {
  graded: 'a verdict was given',
  agent_timeout: 'the policy used up its own time',
  limit: 'the policy used up a budget of its own (turns, tokens): the episode returned `limit`',
  sandbox_oom: 'the policy broke its own memory limit, and that ended the sandbox',
  episode_error: 'the episode function threw, or held three workers that died',
  setup_error: "the task's own set-up failed",
  model_error: 'the model failed, or did not answer in time',
  infra_create: 'no sandbox came up in time',
  infra_lost: 'the sandbox or the machine’s services died by no doing of the episode',
  grade_error: 'the grader crashed, or gave no verdict',
  grade_timeout: 'the grader ran out of time',
  cancelled_user: 'somebody stopped it',
  cancelled_quorum: 'its group had ended: it had what it needs, or failed',
  cancelled_stale: 'its policy had become too old: it lagged more than `group.maxLag`',
  task_invalid: 'the task can not be done by anybody',
} as const satisfies Record<(typeof OUTCOMES)[number], string>

const REWARDS = {
  verdict: "the verdict's",
  verdict_or_zero: 'of the state that is there; 0 without a verdict',
  zero: '0',
  none: 'null',
} as const satisfies Record<OutcomeRule['reward'], string>

/** The table of outcomes in the guide. */
export const outcomes: Document = {
  path: 'docs/guides/rollouts.md',
  text: (current) => fillBlock(current, 'outcomes', outcomeTable()),
}

function outcomeTable(): string {
  const rows = OUTCOMES.map((outcome) => {
    const { valid, reward, fault, actions } = OUTCOME_RULES[outcome]
    const policies = actions.filter((action) => action !== 'keep').map(code)
    return [
      code(outcome),
      CAUSES[outcome],
      valid ? 'yes' : 'no',
      REWARDS[reward],
      retriesOf(outcome),
      fault === null ? '' : code(fault),
      policies.join(' '),
    ]
  })
  const headings = [
    'outcome',
    'what ended it',
    'valid',
    'reward',
    'tried again',
    'fault',
    'policies',
  ]
  return table(headings, rows)
}

function retriesOf(outcome: (typeof OUTCOMES)[number]): string {
  const { budget } = OUTCOME_RULES[outcome]
  if (outcome === 'grade_error' || outcome === 'grade_timeout') {
    return `the grade alone, \`retry.grade\` (${RETRY_DEFAULTS.grade})`
  }
  if (budget === null || budget === 'policy') return ''
  return `\`retry.${budget}\` (${RETRY_DEFAULTS[budget]})`
}
