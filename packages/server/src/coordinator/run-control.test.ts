import type { WorkerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

describe('a run', () => {
  test('gives one result per task and leaves nothing', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(50))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: ({ index }) => ({ kind: 'returned', reward: index }),
    })
    const rows = await simulation.results('a')
    const expected = someTasks(50).map(({ key }, i) => [key, 'graded', i])
    expect(rows.map((row) => [row.key, row.outcome, row.reward]).sort()).toEqual(expected.sort())
    await worker.stream.done
    expect(simulation.node.living.size).toBe(0)
    expect(simulation.warnings).toEqual([])
    await until('it is written down', async () => {
      return (await simulation.engine.log.list('run/')).streams.length === 1
    })
    expect(simulation.coordinator.numbers()).toMatchObject({
      episodes: { queued: 0, running: 0, grading: 0, done: 50 },
    })
  })

  test('never has more sandboxes than its concurrency, nor than the node grants', async () => {
    await using simulation = await simulate({ capacity: 3 })
    await startRun(simulation, runCreate('a', { concurrency: 5 }), someTasks(20))
    let most = 0
    await startSimulatedWorker(simulation.coordinator, {
      ...{ run: 'a', slots: 100 },
      work: () => {
        most = Math.max(most, simulation.node.living.size)
        return DONE
      },
    })
    expect((await simulation.results('a')).map(({ outcome }) => outcome)).toEqual(
      Array(20).fill('graded'),
    )
    expect(most).toBe(3)
  })

  test('that is cancelled ends every episode as cancelled_user, and its workers are told', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a', { concurrency: 2 }))
    await coordinator.putTasks('default', 'a', someTasks(5))
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('two are leased', () => worker.held.size === 2)
    const view = await coordinator.cancelRun('default', 'a')
    expect(['cancelling', 'finished']).toContain(view.state)
    await expect(coordinator.putTasks('default', 'a', someTasks(1, 9))).rejects.toMatchObject({
      code: 'run_closed',
    })
    const rows = await simulation.results('a')
    expect(rows.map(({ outcome }) => outcome)).toEqual(Array(5).fill('cancelled_user'))
    expect(worker.events.filter(({ kind }) => kind === 'revoked')).toHaveLength(2)
    expect(simulation.node.living.size).toBe(0)
    expect(await coordinator.cancelRun('default', 'a')).toMatchObject({ state: 'finished' })
  })

  test('that is paused admits nothing, also over a restart, until it is resumed', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a', { concurrency: 1 }), someTasks(3))
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('one is leased', () => worker.held.size === 1)
    expect(await coordinator.pauseRun('default', 'a')).toMatchObject({ state: 'paused' })
    expect(await coordinator.pauseRun('default', 'a')).toMatchObject({ state: 'paused' })
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    await until('it is over', async () => (await simulation.view('a')).counts.done === 1)
    const restarted = await simulation.restart()
    await worker.reconnect(restarted)
    expect(await simulation.view('a')).toMatchObject({
      ...{ state: 'paused', reason: 'paused by a person' },
      counts: { queued: 2, running: 0 },
    })
    await startSimulatedWorker(restarted, { run: 'a', number: 2, work: () => DONE })
    await restarted.resumeRun('default', 'a')
    await until('the other worker or this one has a lease', async () => {
      for (const lease of worker.held.values()) worker.report(lease, DONE)
      return (await simulation.view('a')).state === 'finished'
    })
    expect(await simulation.results('a')).toHaveLength(3)
  })

  test('whose episodes all throw is paused, and says why', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(100))
    await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => ({ kind: 'threw', cause: ['TypeError: x is not a function'] }),
    })
    await until('it is paused', async () => (await simulation.view('a')).state === 'paused')
    const view = await simulation.view('a')
    expect(view.reason).toMatch(/episode_error/)
    expect(view.outcomes.episode_error).toBeLessThan(60)
  })

  test('over time: an agent that does not end is agent_timeout, and its lease revoked', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { timeout: { agent: 1_000 } }), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('it is leased', () => worker.held.size === 1)
    await until('it is taken', () => simulation.coordinator.numbers().inputsWaiting === 0)
    simulation.clock.advance(999)
    await until(
      'nothing is under way',
      () => simulation.coordinator.numbers().batchesInFlight === 0,
    )
    expect((await simulation.view('a')).counts.done).toBe(0)
    simulation.clock.advance(2)
    const [row] = await simulation.results('a')
    expect(row).toMatchObject({ outcome: 'agent_timeout', valid: true, reward: 0 })
    expect(worker.events.map(({ kind }) => kind)).toContain('revoked')
  })
})

test('a daemon that stood still charges no agent for it', async () => {
  await using simulation = await simulate()
  const { coordinator, clock } = simulation
  await startRun(simulation, runCreate('a', { timeout: { agent: 1_000 } }), someTasks(1))
  const worker = await startSimulatedWorker(coordinator, { run: 'a' })
  await until('it is leased', () => worker.held.size === 1)
  await until('it is taken', () => coordinator.numbers().inputsWaiting === 0)
  coordinator.stoodStill(20_000)
  clock.advance(20_900)
  await until('nothing is under way', () => coordinator.numbers().batchesInFlight === 0)
  expect((await simulation.view('a')).counts.done).toBe(0)
  clock.advance(200)
  const [row] = await simulation.results('a')
  expect(row).toMatchObject({ outcome: 'agent_timeout' })
  expect(row?.phases.agentMs).toBeLessThan(1_200)
})

describe('a daemon', () => {
  test('that drains admits nothing and refuses new runs; what runs goes on', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a', { concurrency: 2 }), someTasks(4))
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('two are leased', () => worker.held.size === 2)
    coordinator.drain()
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    await until('they are done', async () => (await simulation.view('a')).counts.done === 2)
    await until('nothing lives', () => simulation.node.living.size === 0)
    expect((await simulation.view('a')).counts).toMatchObject({ queued: 2, running: 0 })
    await expect(coordinator.createRun('default', runCreate('b'))).rejects.toMatchObject({
      code: 'draining',
    })
    const restarted = await simulation.restart()
    await startSimulatedWorker(restarted, { run: 'a', number: 2, work: () => DONE })
    expect(await simulation.results('a')).toHaveLength(4)
  })

  test('that has not recovered, or has stopped, refuses every call', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await coordinator[Symbol.asyncDispose]()
    await expect(coordinator.getRun('default', 'a')).rejects.toMatchObject({ code: 'draining' })
  })
})

describe('a report of a run', () => {
  test('says what its reader waited, also over a restart', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { concurrency: 1 }), someTasks(2))
    const reading = simulation.coordinator.getResults('default', 'a', { waitMs: 30_000 })
    const trainer = async () => {
      const { saturation } = await simulation.coordinator.getReport('default', 'a')
      return saturation?.trainer
    }
    await until('somebody waits', async () => (await trainer()) !== undefined)
    await until('it is told', async () => {
      simulation.clock.advance(1_000)
      return ((await trainer())?.waitedMs ?? 0) >= 5_000
    })
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => DONE,
    })
    expect((await reading).rows.length).toBeGreaterThan(0)
    const told = await trainer()
    expect(told?.taken).toBeGreaterThan(0)
    expect(told?.waitShare).toBe(1)
    await simulation.results('a')
    await worker.reconnect(await simulation.restart())
    const kept = await trainer()
    expect(kept?.waitedMs).toBeGreaterThanOrEqual(5_000)
  })

  test('counts, says how long phases took, and what limits it', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a', { concurrency: 2 }))
    await coordinator.putTasks('default', 'a', someTasks(10))
    expect((await coordinator.getReport('default', 'a')).limiting).toBe('worker')
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('two are leased', () => worker.held.size === 2)
    await until('they are taken', () => coordinator.numbers().batchesInFlight === 0)
    expect((await coordinator.getReport('default', 'a')).limiting).toBe('concurrency')
    simulation.clock.advance(1_000)
    await coordinator.closeRun('default', 'a')
    await until('all are done', async () => {
      for (const lease of worker.held.values()) worker.report(lease, DONE)
      return (await simulation.view('a')).state === 'finished'
    })
    const report = await coordinator.getReport('default', 'a')
    expect(report).toMatchObject({
      ...{ limiting: 'none', rewardMean: 1, attempts: 10, retries: 0, elapsedMs: 1_000 },
      run: { outcomes: { graded: 10 }, counts: { done: 10 } },
      phases: { agent: { count: 10 }, create: { count: 10 } },
    })
    expect(report.perSecond).toBe(10)
    expect(report.phases.create?.p50Ms).toBeCloseTo(5, 0)
  })
})
