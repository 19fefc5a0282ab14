import type { WorkerReport } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

test('a run with `ahead` starts nothing more until its results are read, also over a restart', async () => {
  await using simulation = await simulate()
  await startRun(simulation, runCreate('a', { concurrency: 1, ahead: 2 }), someTasks(6))
  const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a', work: () => DONE })
  const standing = (done: number) =>
    until(`${done} are done and recorded, and none runs`, async () => {
      const { counts } = await simulation.view('a')
      if (counts.done !== done || counts.running > 0) return false
      return (await simulation.coordinator.getResults('default', 'a', {})).rows.length === done
    })
  const read = (after?: string) =>
    simulation.coordinator.getResults('default', 'a', after === undefined ? {} : { after })
  await standing(2)
  const { limiting } = await simulation.coordinator.getReport('default', 'a')
  expect(limiting).toBe('consumer')

  const first = await read()
  expect(first.rows).toHaveLength(2)
  await standing(2)
  await read(first.rows[0]?.cursor)
  await standing(3)
  await simulation.restart()
  await worker.reconnect(simulation.coordinator)
  await read(first.cursor)
  await standing(4)
  const second = await read(first.cursor)
  await read(second.cursor)
  expect(await simulation.results('a')).toHaveLength(6)
})

test('the same run may be joined with another `ahead`', async () => {
  await using simulation = await simulate()
  const { coordinator } = simulation
  await coordinator.createRun('default', runCreate('a', { ahead: 2 }))
  expect(await coordinator.createRun('default', runCreate('a'))).toMatchObject({ attached: true })
})
