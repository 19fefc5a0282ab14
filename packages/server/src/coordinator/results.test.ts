import type { WorkerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

describe('results', () => {
  test('are read page by page from a cursor, and say when they end', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a'), someTasks(25))
    await startSimulatedWorker(coordinator, { run: 'a', work: () => DONE })
    await simulation.results('a')
    const pages: [number, boolean][] = []
    const keys: string[] = []
    for (let after: string | undefined; pages.at(-1)?.[1] !== true; ) {
      const query = { limit: 10, ...(after === undefined ? {} : { after }) }
      const page = await coordinator.getResults('default', 'a', query)
      pages.push([page.rows.length, page.done])
      keys.push(...page.rows.map(({ key }) => key))
      after = page.cursor
    }
    expect(pages).toEqual([
      [10, false],
      [10, false],
      [5, true],
    ])
    expect(new Set(keys).size).toBe(25)
    // Reading on from the end, or from any row, again and after a restart.
    await simulation.restart()
    const { rows } = await simulation.coordinator.getResults('default', 'a', {})
    const after = rows[20]?.cursor ?? ''
    const rest = await simulation.coordinator.getResults('default', 'a', { after })
    expect([rest.rows.map(({ key }) => key), rest.done]).toEqual([keys.slice(21), true])
    const end = await simulation.coordinator.getResults('default', 'a', { after: rest.cursor })
    expect(end).toEqual({ rows: [], cursor: rest.cursor, done: true })
  })

  test('are waited for', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a', { concurrency: 1 }), someTasks(1))
    const waiting = coordinator.getResults('default', 'a', { waitMs: 10_000 })
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('it is leased', () => worker.held.size === 1)
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    expect((await waiting).rows).toHaveLength(1)
  })

  test('that don’t come in time give an empty page, and an aborted wait its reason', async () => {
    await using simulation = await simulate()
    const { coordinator, clock } = simulation
    await coordinator.createRun('default', runCreate('a'))
    expect(await coordinator.getResults('default', 'a', {})).toEqual({
      ...{ rows: [], cursor: '', done: false },
    })
    let page: unknown
    const waiting = coordinator.getResults('default', 'a', { waitMs: 5_000 }).then((found) => {
      page = found
    })
    await until('time has passed', () => {
      clock.advance(1_000)
      return page !== undefined
    })
    await waiting
    expect(page).toEqual({ rows: [], cursor: '', done: false })
    const abort = new AbortController()
    const aborted = coordinator.getResults(
      ...(['default', 'a', { waitMs: 5_000 }, { signal: abort.signal }] as const),
    )
    abort.abort()
    await expect(aborted).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('end with the run, also for one who waits', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    const waiting = coordinator.getResults('default', 'a', { waitMs: 10_000 })
    await coordinator.closeRun('default', 'a')
    expect(await waiting).toMatchObject({ rows: [], done: true })
  })

  test('from a cursor that is none, or of a run that is none, are refused', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await expect(
      coordinator.getResults('default', 'a', { after: 'no cursor' }),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(coordinator.getResults('default', 'b', {})).rejects.toMatchObject({
      code: 'run_unknown',
    })
  })
})
