import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import { type CauseCount, countCause, topCauses } from './causes.ts'

const of = { outcome: 'infra_lost', retried: false } as const

test('causes that differ in ids and numbers alone are one, with the first as its example', () => {
  const causes: CauseCount[] = []
  const id = (n: number) => `sb_${String(n).repeat(20)}`
  for (const n of [1, 2, 3]) {
    const cause = ['the sandbox was lost', `${id(n)} did not\nanswer for ${n}00 ms`]
    countCause(causes, { ...of, cause, key: `task-${n}` })
  }
  countCause(causes, { ...of, retried: true, cause: ['the sandbox was lost'], key: 'x' })
  expect(topCauses(causes)).toEqual([
    {
      ...of,
      cause: `the sandbox was lost: ${id(1)} did not answer for 100 ms`,
      count: 3,
      example: 'task-1',
    },
    { ...of, retried: true, cause: 'the sandbox was lost', count: 1, example: 'x' },
  ])
})

test('the frequent stay and come first, however many rare ones there are', () => {
  const causes: CauseCount[] = []
  const letters = (n: number) =>
    n.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[+digit] ?? '')
  for (let n = 0; n < 1_000; n++) {
    countCause(causes, { ...of, cause: [`rare ${letters(n)}`], key: `rare-${n}` })
    if (n % 3 === 0) countCause(causes, { ...of, cause: ['often'], key: 'often' })
  }
  expect(causes.length).toBe(CORE_LIMITS.causesKept)
  const top = topCauses(causes)
  expect(top[0]).toMatchObject({ cause: 'often', count: 334 })
  expect(top.length).toBe(CORE_LIMITS.causesReported)
})

test('what has no cause is not counted, and a long one is cut', () => {
  const causes: CauseCount[] = []
  countCause(causes, { ...of, cause: [], key: 'a' })
  countCause(causes, { ...of, cause: ['x'.repeat(5_000)], key: 'b' })
  expect(causes.map(({ cause }) => cause.length)).toEqual([CORE_LIMITS.causeShown])
})
