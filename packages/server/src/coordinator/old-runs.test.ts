import { pino } from 'pino'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { keepRetention } from '../retention.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { until } from './simulated/settle.ts'
import { runCreate, type Simulation, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DAY_MS = 86_400_000

async function finish(simulation: Simulation, name: string, retain?: number) {
  await startRun(simulation, runCreate(name, retain === undefined ? {} : { retain }), someTasks(1))
  await startSimulatedWorker(simulation.coordinator, {
    run: name,
    work: () => ({ kind: 'returned', reward: 1 }),
  })
  await simulation.results(name)
}

const names = async ({ coordinator }: Simulation) =>
  (await coordinator.listRuns('default', {})).items.map(({ name }) => name)

test('a run that is over goes with all it had when its time has come, one that is not stays', async () => {
  await using simulation = await simulate()
  const { coordinator, clock, engine } = simulation
  await finish(simulation, 'short', DAY_MS)
  await finish(simulation, 'long', 30 * DAY_MS)
  await finish(simulation, 'plain')
  await startRun(simulation, runCreate('open', { retain: DAY_MS }), someTasks(1))
  expect(await coordinator.deleteOldRuns(undefined)).toBe(0)
  clock.advance(2 * DAY_MS)
  expect(await coordinator.deleteOldRuns(undefined)).toBe(1)
  expect(await names(simulation)).toEqual(['long', 'open', 'plain'])
  await expect(coordinator.getRun('default', 'short')).rejects.toMatchObject({
    code: 'run_unknown',
  })
  // What says nothing itself goes by the daemon's own.
  expect(await coordinator.deleteOldRuns(DAY_MS)).toBe(1)
  expect(await names(simulation)).toEqual(['long', 'open'])
  clock.advance(30 * DAY_MS)
  expect(await coordinator.deleteOldRuns(DAY_MS)).toBe(1)
  const left = (await engine.log.list('run/')).streams.map(({ name }) => name)
  const open = await coordinator.getRun('default', 'open')
  expect(left.every((name) => name.includes(open.id))).toBe(true)
})

test('goes in bounded batches, at its own pace', async () => {
  await using simulation = await simulate()
  const { clock, coordinator } = simulation
  const count = COORDINATOR_LIMITS.oldRunsAtOnce + 1
  for (let run = 0; run < count; run++) {
    await coordinator.createRun('default', runCreate(`run-${run}`))
    await coordinator.cancelRun('default', `run-${run}`)
  }
  await until('all are written down', async () => {
    const { items } = await coordinator.listRuns('default', {})
    return items.every(({ state }) => state === 'finished')
  })
  const log = pino({ level: 'silent' })
  using _ = keepRetention({ coordinator, clock, log, retainMs: DAY_MS })
  clock.advance(DAY_MS - 1)
  expect(await names(simulation)).toHaveLength(count)
  await until('none is left', async () => {
    clock.advance(SERVER_LIMITS.retainEveryMs)
    return (await names(simulation)).length === 0
  })
})
