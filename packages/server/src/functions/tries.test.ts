import { expect, test } from 'vitest'
import { lostError, mayBegin, NO_TRIES, nextStep, triesBefore } from './tries.ts'
import { wantedContainers } from './wanted.ts'

const retry = { error: 2, infra: 1, backoffMs: 100 }
const error = lostError('gone')

test('deliveries of which nothing is known were lost', () => {
  expect(triesBefore(1, NO_TRIES)).toEqual(NO_TRIES)
  expect(triesBefore(3, NO_TRIES)).toEqual({ seen: 2, errors: 0, lost: 2 })
  expect(triesBefore(3, { seen: 2, errors: 2, lost: 0 })).toEqual({ seen: 2, errors: 2, lost: 0 })
  expect(mayBegin({ seen: 1, errors: 0, lost: 1 }, retry)).toBe(true)
  expect(mayBegin({ seen: 2, errors: 0, lost: 2 }, retry)).toBe(false)
})

test('an error is tried again after longer and longer waits, then it is dead', () => {
  const first = nextStep({ kind: 'error', error }, NO_TRIES, retry)
  expect(first).toEqual({ kind: 'again', delayMs: 100, tries: { seen: 1, errors: 1, lost: 0 } })
  const tries = { seen: 1, errors: 1, lost: 0 }
  expect(nextStep({ kind: 'error', error }, tries, retry)).toMatchObject({ delayMs: 200 })
  const last = { seen: 2, errors: 2, lost: 0 }
  expect(nextStep({ kind: 'error', error }, last, retry)).toEqual({ kind: 'dead', error })
})

test('what was lost, never begun, or can’t be helped', () => {
  const lost = nextStep({ kind: 'infra', error }, NO_TRIES, retry)
  expect(lost).toEqual({ kind: 'again', delayMs: 0, tries: { seen: 1, errors: 0, lost: 1 } })
  const idle = nextStep({ kind: 'idle' }, NO_TRIES, retry)
  expect(idle).toEqual({ kind: 'again', delayMs: 0, tries: { seen: 1, errors: 0, lost: 0 } })
  expect(nextStep({ kind: 'fatal', error }, NO_TRIES, retry)).toEqual({ kind: 'dead', error })
})

test('containers are wanted by what waits and runs, within their bounds', () => {
  const autoscale = { tasksPerContainer: 4, minContainers: 1, maxContainers: 3, idleMs: 0 }
  const wanted = [0, 1, 4, 5, 12, 1_000].map((tasks) => wantedContainers(tasks, autoscale))
  expect(wanted).toEqual([1, 1, 1, 2, 3, 3])
  expect(wantedContainers(0, { ...autoscale, minContainers: 0 })).toBe(0)
})
