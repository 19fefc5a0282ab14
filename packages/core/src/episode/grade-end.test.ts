import type { GradeSpec } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import type { GradeResult } from '../run/input.ts'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const AGENT_MS = 10_000
const GRADE_MS = 5_000

const grade: GradeSpec = { kind: 'command', command: ['true'], in: 'world' }

/** An episode whose grade by the daemon has begun. `late`: its agent used up its time. */
function grading(late: boolean): ScriptedRun {
  const timeout = { agent: AGENT_MS, grade: GRADE_MS }
  const script = scriptedRun({ grade, timeout, retry: { infra: 0, grade: 0 } })
  script.tell({ type: 'worker_attached', worker: 'w', slots: 1, held: [] })
  script.put(1)
  const lease = addressOf(script.toAgent())
  if (late) script.pass(AGENT_MS)
  else script.tell({ type: 'reported', ...lease, report: { kind: 'returned' } })
  return script
}

function ended(script: ScriptedRun) {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
  return script.row()
}

test('a grader that did not end in time says what it printed last, and what of it was kept', () => {
  const script = grading(false)
  const artifacts = [{ name: 'grade.stdout', blob: 'sha256:0', sizeBytes: 1 }]
  const result: GradeResult = { kind: 'timed_out', said: 'comparing 3 of 9' }
  script.tell({ type: 'graded', ...addressOf(script.last('start_grade')), result, artifacts })
  expect(ended(script)).toMatchObject({
    ...{ outcome: 'grade_timeout', valid: false, reward: null, artifacts },
    error: 'the grader did not end within 5s: comparing 3 of 9',
  })
})

test('its command has the whole time, and a while more to be heard of', () => {
  const script = grading(false)
  const { dueMs } = script.last('start_grade')
  expect(dueMs - script.nowMs).toBe(GRADE_MS)
  script.pass(GRADE_MS + CORE_LIMITS.stopMs - 500)
  expect(script.count('cancel_grade')).toBe(0)
  script.pass(500)
  expect(script.count('cancel_grade')).toBe(1)
  expect(ended(script)).toMatchObject({
    ...{ outcome: 'grade_timeout', reward: null },
    error: 'the grader did not end within 5s',
  })
})

test.each<[string, GradeResult, object]>([
  ['gave none', { kind: 'failed', cause: 'exit 127' }, { outcome: 'agent_timeout', reward: 0 }],
  ['did not end', { kind: 'timed_out' }, { outcome: 'agent_timeout', reward: 0 }],
  [
    'was kept from one by the platform',
    { kind: 'failed', cause: 'no world', fault: 'platform' },
    { outcome: 'grade_error', valid: false, reward: null },
  ],
])('a policy that used up its time, and whose grader %s', (_, result, expected) => {
  const script = grading(true)
  script.tell({ type: 'graded', ...addressOf(script.last('start_grade')), result })
  const row = ended(script)
  expect(row).toMatchObject(expected)
  expect(row.cause).toContain('the agent used up its time within 10s')
})

test('a policy that used up its time, and of whose grader nothing is heard, has no zero', () => {
  const script = grading(true)
  script.pass(GRADE_MS + CORE_LIMITS.stopMs)
  expect(ended(script)).toMatchObject({ outcome: 'grade_timeout', valid: false, reward: null })
})

test.each([
  ['by no doing of its own', { fault: 'platform' } as const, 'grade_error', null],
  ['by itself', {}, 'limit', 0],
])(
  'a policy that used up a budget, and whose grader function threw %s',
  (_, blame, outcome, reward) => {
    const script = scriptedRun({ grade: { kind: 'worker', in: 'world' }, retry: { grade: 0 } })
    script.tell({ type: 'worker_attached', worker: 'w', slots: 1, held: [] })
    script.put(1)
    const agent = addressOf(script.toAgent())
    script.tell({ type: 'reported', ...agent, report: { kind: 'returned', limit: 'turns' } })
    const lease = addressOf(script.last('offer_lease'))
    script.tell({ type: 'reported', ...lease, report: { kind: 'threw', cause: ['no'] }, ...blame })
    expect(ended(script)).toMatchObject({ outcome, reward })
  },
)

test('a policy that used up a budget, and all whose workers died over its grade, has no zero', () => {
  const script = scriptedRun({ grade: { kind: 'worker', in: 'world' } })
  const attach = (worker: string) =>
    script.tell({ type: 'worker_attached', worker, slots: 1, held: [] })
  attach('w0')
  script.put(1)
  const agent = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...agent, report: { kind: 'returned', limit: 'turns' } })
  for (let n = 1; n <= CORE_LIMITS.workersLost; n++) {
    attach(`w${n}`)
    const offer = script.last('offer_lease')
    script.tell({ type: 'lease_taken', ...addressOf(offer) })
    script.tell({ type: 'worker_lost', worker: offer.worker, cause: 'killed', died: true })
  }
  expect(ended(script)).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
})
