import { EPISODE_STATES, type EpisodeItem } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { EpisodesQuery } from './episodes.ts'
import { until } from './simulated/settle.ts'
import { runCreate, type Simulation, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

async function listed({ coordinator }: Simulation, query: EpisodesQuery = {}) {
  const items: EpisodeItem[] = []
  for (let after: string | undefined; ; ) {
    const page = await coordinator.listEpisodes('default', 'a', {
      ...query,
      ...(after === undefined ? {} : { after }),
    })
    expect(page.items.length).toBeLessThanOrEqual(query.limit ?? 100)
    items.push(...page.items)
    if (page.next === null) return items
    after = page.next
  }
}

const keys = (items: readonly EpisodeItem[]) => items.map(({ key }) => key)

/** Odd ones have ended, in two ways; two of the others are held by the worker. */
async function halfDone(): Promise<Simulation> {
  const simulation = await simulate()
  await startRun(simulation, runCreate('a', { concurrency: 6, retry: { infra: 0 } }), someTasks(10))
  const worker = await startSimulatedWorker(simulation.coordinator, {
    ...{ run: 'a', slots: 6 },
    work: ({ key, index }) => {
      if (index % 2 === 0) return undefined
      if (index === 3) return { kind: 'threw', cause: [`${key} threw`] }
      return { kind: 'returned', reward: index }
    },
  })
  await until('the odd ones are done', async () => {
    const { rows } = await simulation.coordinator.getResults('default', 'a', {})
    return rows.length === 5 && worker.held.size === 5
  })
  return simulation
}

test('episodes are listed as they stand, page by page, and by what they are', async () => {
  await using simulation = await halfDone()
  const all = await listed(simulation)
  expect(keys(all).slice(0, 5)).toEqual(['t0', 't2', 't4', 't6', 't8'])
  expect(keys(all).slice(5).sort()).toEqual(['t1', 't3', 't5', 't7', 't9'])
  for (const limit of [1, 3, 5, 10]) expect(await listed(simulation, { limit })).toEqual(all)
  expect(all[0]).toMatchObject({ state: 'running', phase: 'agent', outcome: null, attempt: 1 })
  for (const state of EPISODE_STATES) {
    const wanted = all.filter((item) => item.state === state)
    expect(await listed(simulation, { state, limit: 2 })).toEqual(wanted)
  }
  expect(keys(await listed(simulation, { outcome: 'episode_error' }))).toEqual(['t3'])
  expect(await listed(simulation, { outcome: 'episode_error', state: 'running' })).toEqual([])
  for (const after of ['nonsense', 'live:x', 'done:nonsense']) {
    const wrong = simulation.coordinator.listEpisodes('default', 'a', { after })
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_request' })
  }
})

test('an episode is found by its key and its id, while it lives, when it is done, when its run is over', async () => {
  await using simulation = await halfDone()
  const look = (name: string) => simulation.coordinator.getEpisode('default', 'a', name)
  const live = await look('t0')
  expect(live).toMatchObject({
    ...{ state: 'running', phase: 'agent', waits: null, row: null, attempts: [] },
    progress: [{ attempt: 1, worker: { goneMs: null } }],
  })
  const threw = await look('t3')
  expect(threw).toMatchObject({
    ...{ state: 'done', phase: 'ended', outcome: 'episode_error', error: 't3 threw' },
    ...{ progress: [], attempts: [{ attempt: 1 }], row: { key: 't3', cause: ['t3 threw'] } },
  })
  expect(await look(threw.episode)).toEqual(threw)
  expect(await look(live.episode)).toMatchObject({ key: 't0', state: 'running' })
  for (const name of ['t10', 'ep_00000000000000000000', '"key":"t3"', '']) {
    await expect(look(name)).rejects.toMatchObject({ code: 'not_found', hint: /./ })
  }
  await simulation.coordinator.cancelRun('default', 'a')
  await simulation.results('a')
  expect(await look('t0')).toMatchObject({ state: 'done', outcome: 'cancelled_user' })
  expect(await look('t3')).toEqual(threw)
  expect(await listed(simulation, { state: 'done' })).toHaveLength(10)
})

test('a key of any text is found', async () => {
  await using simulation = await simulate()
  const odd = ['a/b', '..', 'two\nlines', '"quoted"', '\\u0061', 'ключ', 'k'.repeat(512)]
  const tasks = odd.map((key) => ({ key, json: '1' }))
  await startRun(simulation, runCreate('a'), tasks)
  await startSimulatedWorker(simulation.coordinator, {
    ...{ run: 'a', work: () => ({ kind: 'returned', reward: 1 }) },
  })
  await simulation.results('a')
  for (const key of odd) {
    const found = await simulation.coordinator.getEpisode('default', 'a', key)
    expect(found).toMatchObject({ key, outcome: 'graded' })
  }
})
