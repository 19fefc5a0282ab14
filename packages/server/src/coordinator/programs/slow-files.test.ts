import type { RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { SimulatedNodeOptions } from '../simulated/node.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from '../simulated/setup.ts'

const AGENT_MS = 2_000

const run: RunCreate = runCreate('a', {
  kind: 'program',
  program: { command: ['solve'] },
  timeout: { agent: AGENT_MS },
  retry: { infra: 0 },
})

/** A node whose files come only when a test says so. */
function slow() {
  const ready = Promise.withResolvers<void>()
  let puts = 0
  const onPut: SimulatedNodeOptions['onPut'] = async () => {
    puts += 1
    await ready.promise
  }
  return { onPut, puts: () => puts, ready: ready.resolve }
}

test('what a program needs takes none of its time, however long it takes to come', async () => {
  const node = slow()
  await using simulation = await simulate(node)
  await startRun(simulation, run, someTasks(1))
  await until('its files are brought', () => node.puts() === 1)
  let passedMs = 0
  await until('much more than its time is over', () => {
    if (!simulation.isIdle) return false
    simulation.clock.advance(AGENT_MS / 4)
    passedMs += AGENT_MS / 4
    return passedMs > 10 * AGENT_MS
  })
  node.ready()
  await until('it is over', async () => (await simulation.view('a')).counts.done === 1)
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'graded', reward: 1, attempt: 1 })
  expect(row?.phases.agentMs).toBeLessThan(AGENT_MS)
})

test('one whose files never come has no reward', async () => {
  const node = slow()
  await using simulation = await simulate(node)
  await startRun(simulation, run, someTasks(1))
  await until('its attempts are over', async () => {
    if (simulation.isIdle) simulation.clock.advance(5_000)
    return (await simulation.view('a')).counts.done === 1
  })
  const rows = await overTime(simulation)
  expect(rows).toMatchObject([{ outcome: 'episode_error', valid: false, reward: null }])
  expect(simulation.node.started).toEqual([])
})
