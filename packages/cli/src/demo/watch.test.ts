import type { RunView } from 'sandlot'
import { expect, test } from 'vitest'
import { countsOf } from '../commands/live-counts.ts'
import { watchRuns } from './watch.ts'

function view(counts: Partial<RunView['counts']>, outcomes: RunView['outcomes'] = {}): RunView {
  const none = { tasks: 0, queued: 0, running: 0, grading: 0, done: 0 }
  return { counts: { ...none, ...counts }, outcomes } as unknown as RunView
}

test('runs are summed, tasks that are not submitted yet are queued', () => {
  const views = [
    view({ tasks: 5, done: 3, running: 1, queued: 1 }, { graded: 1, sandbox_oom: 2 }),
    view({ tasks: 2, done: 1, grading: 1 }, { sandbox_oom: 1 }),
  ]
  expect(countsOf(views, 10, 1_000)).toEqual({
    done: 4,
    running: 2,
    queued: 4,
    failures: new Map([['sandbox_oom', 3]]),
    elapsedMs: 1_000,
  })
})

const { signal } = new AbortController()

test('it looks for as long as the work goes on, and no longer', async () => {
  const work = Promise.withResolvers<string>()
  let asked = 0
  let aborted = false
  const run = {
    async view(wait?: { readonly signal?: AbortSignal }): Promise<RunView> {
      asked++
      wait?.signal?.addEventListener('abort', () => {
        aborted = true
      })
      work.resolve('done')
      return view({})
    },
  }
  expect(await watchRuns([run], work.promise, { tasks: 1, signal })).toBe('done')
  expect(asked).toBe(1)
  expect(aborted).toBe(true)
})

test('a run that can’t be looked at is the business of its results', async () => {
  const run = {
    async view(): Promise<RunView> {
      throw new Error('the daemon is away')
    },
  }
  expect(await watchRuns([run], Promise.resolve(1), { tasks: 1, signal })).toBe(1)
})

test('work that fails fails', async () => {
  const run = { view: async () => view({}) }
  const work = Promise.reject(new Error('no'))
  await expect(watchRuns([run], work, { tasks: 1, signal })).rejects.toThrow('no')
})
