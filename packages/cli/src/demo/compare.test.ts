import type { ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import type { HumanEvalTask } from './dataset.ts'
import { behaviourOf, empty, gold, hostile } from './policies.ts'
import { compare } from './run-policies.ts'

function taskOf(number: number): HumanEvalTask {
  const id = `HumanEval/${number}`
  return { id, number, prompt: 'p', entryPoint: 'f', solution: 's', test: 't' }
}

const TASKS = Array.from({ length: 20 }, (_, number) => taskOf(number))

function row(key: string, over: Partial<ResultRow>): ResultRow {
  return {
    key,
    outcome: 'graded',
    reward: 1,
    flags: [],
    cause: [],
    ...over,
  } as unknown as ResultRow
}

test('rows that came out as they must are no complaint', () => {
  expect(
    compare(
      gold,
      TASKS,
      TASKS.map(({ id }) => row(id, {})),
    ),
  ).toEqual([])
  expect(
    compare(
      empty,
      TASKS,
      TASKS.map(({ id }) => row(id, { reward: 0 })),
    ),
  ).toEqual([])
  const rows = TASKS.map((task) => {
    const { outcome, reward, flag } = behaviourOf(task)
    return row(task.id, { outcome, reward, flags: flag ? [flag, 'pids'] : [] })
  })
  expect(compare(hostile, TASKS, rows)).toEqual([])
})

test.each([
  ['another reward', { reward: 0.5 }, 'graded, reward 0.5, flags []; wanted graded, reward 1'],
  [
    'another outcome',
    { outcome: 'grade_error' as const, reward: null, cause: ['the grader died'] },
    'grade_error, reward null, flags []; wanted graded, reward 1 (the grader died)',
  ],
])('%s is told', (_, over, what) => {
  expect(compare(gold, [taskOf(3)], [row('HumanEval/3', over)])).toEqual([
    `gold HumanEval/3: ${what}`,
  ])
})

test('a flag that is missing is told', () => {
  const printing = TASKS.find((task) => behaviourOf(task).flag === 'output') as HumanEvalTask
  const rows = [row(printing.id, { outcome: 'agent_timeout', reward: 0 })]
  expect(compare(hostile, [printing], rows)[0]).toContain(
    'wanted agent_timeout, reward 0, flag output',
  )
})

test('a result that is missing is told, and so is one too many', () => {
  expect(compare(gold, [taskOf(1)], [])).toEqual([
    'gold: 0 results for 1 tasks',
    'gold HumanEval/1: no result; wanted graded, reward 1',
  ])
  const twice = [row('HumanEval/1', {}), row('HumanEval/1', {})]
  expect(compare(gold, [taskOf(1)], twice)).toEqual(['gold: 2 results for 1 tasks'])
})

test('the behaviours take turns, so that every one is met within the first tasks', () => {
  const names = TASKS.map((task) => behaviourOf(task).name)
  expect(names.slice(0, 10)).toEqual(names.slice(10))
  expect(new Set(names).size).toBe(10)
})

test('only episodes that nothing else ends have little time', async () => {
  for (const task of TASKS) {
    const endless = behaviourOf(task).outcome === 'agent_timeout'
    expect(await hostile.each?.(task, task.number)).toEqual(
      endless ? { timeout: { agent: 8_000 } } : {},
    )
  }
})
