import { hedgeSpec, type WorkerReport } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { attemptOfSandbox } from './ids.ts'
import { until } from './simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }
const hedging = (after: string, more = {}) =>
  runCreate('a', { hedge: hedgeSpec.parse({ after, ...more }) })

test('a sandbox that does not come up gets a second beside it, and nothing of it is left', async () => {
  await using simulation = await simulate({
    // The first attempt's creation hangs until it is given back.
    onAcquire: async ({ sandbox, owner }) => {
      if (!owner.endsWith('/1')) return
      await until('it is given back', async () => {
        return (await simulation.node.find(sandbox))?.sandbox === sandbox
      })
    },
  })
  const { coordinator, node } = simulation
  await startRun(simulation, hedging('10s'), someTasks(1))
  const worker = await startSimulatedWorker(coordinator, { run: 'a', work: () => DONE })
  const [row] = await overTime(simulation, worker, 1_000)
  expect(row).toMatchObject({
    ...{ outcome: 'graded', attempt: 2 },
    attempts: [
      { attempt: 1, outcome: null, cause: ['the other attempt was prepared first'] },
      { attempt: 2, outcome: 'graded' },
    ],
  })
  expect(await coordinator.getReport('default', 'a')).toMatchObject({
    ...{ attempts: 2, retries: 0, hedges: { started: 1, won: 1 } },
  })
  await until('nothing lives', () => node.living.size === 0)
})

test('two agents work where that is asked for, and who is second is told so', async () => {
  await using simulation = await simulate()
  const { coordinator } = simulation
  await startRun(simulation, hedging('10s', { phases: ['agent'] }), someTasks(1))
  const worker = await startSimulatedWorker(coordinator, {
    run: 'a',
    work: ({ attempt }) => (attempt === 2 ? DONE : undefined),
  })
  const [row] = await overTime(simulation, worker, 1_000)
  expect(row).toMatchObject({ outcome: 'graded', attempt: 2 })
  expect(worker.events).toContainEqual(
    expect.objectContaining({ kind: 'revoked', cause: 'the other attempt was first' }),
  )
})

test('both attempts of an episode outlive a restart', async () => {
  await using simulation = await simulate()
  const { node, clock } = simulation
  await startRun(simulation, hedging('10s', { phases: ['agent'] }), someTasks(1))
  const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
  await until('both work', () => {
    const { inputsWaiting, batchesInFlight } = simulation.coordinator.numbers()
    if (inputsWaiting === 0 && batchesInFlight === 0) {
      clock.advance(500)
      worker.renew()
    }
    return worker.held.size === 2
  })
  await simulation.restart()
  await worker.reconnect(simulation.coordinator)
  const [, second] = [...worker.held.values()]
  const { id } = await simulation.view('a')
  expect([...node.living.keys()].map((sandbox) => attemptOfSandbox(id, sandbox)?.attempt)).toEqual([
    1, 2,
  ])
  if (second) worker.report(second, DONE)
  expect(await simulation.results('a')).toMatchObject([{ outcome: 'graded', attempt: 2 }])
  await until('nothing lives', () => node.living.size === 0)
})
