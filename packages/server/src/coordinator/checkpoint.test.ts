import type { TaskPut } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

/** Long keys, so that few tasks make many events. */
function longTasks(count: number, from: number): TaskPut[] {
  return Array.from({ length: count }, (_, i) => ({
    key: `${from + i}-`.padEnd(500, 'k'),
    json: `${from + i}`,
  }))
}

test('a run is read back from its checkpoint and what came after it', async () => {
  await using simulation = await simulate()
  const { coordinator, engine } = simulation
  await startRun(simulation, runCreate('a', { concurrency: 100 }), longTasks(1, 0))
  const { id } = await simulation.view('a')
  const stream = `run/default/${id}/events`
  await coordinator.cancelRun('default', 'a')
  await simulation.results('a')

  await coordinator.createRun('default', runCreate('b', { concurrency: 100 }))
  const b = `run/default/${(await simulation.view('b')).id}/events`
  let kept = 0
  const worker = await startSimulatedWorker(coordinator, {
    ...{ run: 'b', slots: 100, keepEvents: false },
    work: ({ index }) => {
      if (index % 300 !== 0) return { kind: 'returned', reward: index }
      kept += 1
      return undefined
    },
  })
  const total = 9_000
  for (let from = 0; from < total; from += 1_000) {
    await coordinator.putTasks('default', 'b', longTasks(1_000, from))
  }
  await until(
    'all but the kept ones are done',
    async () => (await simulation.view('b')).counts.done === total - total / 300,
  )
  await until('there is a checkpoint', async () => {
    return (await engine.log.latestCheckpoint(b)) !== undefined
  })
  const before = await simulation.view('b')
  await simulation.restart()
  expect(await simulation.view('b')).toEqual(before)
  expect(worker.held.size).toBe(kept)

  await worker.reconnect(simulation.coordinator)
  await simulation.coordinator.closeRun('default', 'b')
  for (const lease of worker.held.values()) worker.report(lease, { kind: 'returned', reward: 0 })
  await simulation.results('b')
  const keys = new Set<string>()
  for (let after = ''; ; ) {
    const page = await simulation.coordinator.getResults('default', 'b', { after, limit: 1_000 })
    for (const row of page.rows) keys.add(row.key)
    expect(page.rows.every(({ attempt }) => attempt === 1)).toBe(true)
    after = page.cursor
    if (page.done) break
  }
  expect(keys.size).toBe(total)
  expect(await engine.log.head(stream)).toBeUndefined()
})
