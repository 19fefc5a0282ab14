import { LIMITS, type WorkerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

describe('leases', () => {
  test('go to the workers in turn, as many as each has slots', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a', { concurrency: 10 }), someTasks(10))
    const first = await startSimulatedWorker(coordinator, { run: 'a', number: 1, slots: 3 })
    const second = await startSimulatedWorker(coordinator, { run: 'a', number: 2, slots: 3 })
    await until('all slots are taken', () => first.held.size + second.held.size === 6)
    expect([first.held.size, second.held.size]).toEqual([3, 3])
    const [lease] = first.held.values()
    if (lease) first.report(lease, DONE)
    await until('the slot is taken again', () => first.held.size === 3)
    expect(coordinator.numbers()).toMatchObject({ workers: 2, leases: 6 })
  })

  test('say what they are for, and are settled once the report is durable', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, runCreate('a', { seed: 7 }), [
      { key: 'k', json: '{"n":1}', group: 'g' },
    ])
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('the lease is there', () => worker.held.size === 1)
    const [lease] = worker.held.values()
    expect(lease).toMatchObject({
      ...{ phase: 'agent', key: 'k', index: 0, attempt: 1, policyVersion: 0, world: 'main' },
      ...{ taskJson: '{"n":1}', taskBlob: null, dataJson: null, dataBlob: null },
      ...{ timeoutMs: 900_000, modelTimeoutMs: 300_000 },
    })
    if (!lease) return
    worker.report(lease, { kind: 'returned', reward: 0.5, dataJson: '{"said":"hi"}' })
    const [row] = await simulation.results('a')
    expect(worker.events.at(-1)).toEqual({ kind: 'settled', lease: lease.lease, accepted: true })
    expect(row).toMatchObject({
      ...{ key: 'k', group: 'g', episode: lease.episode, seed: lease.seed, from: 'sha256:im_a' },
      ...{ outcome: 'graded', reward: 0.5, valid: true, data: { said: 'hi' } },
      ...{ sandbox: lease.sandbox, node: 'simulated' },
      phases: { createMs: 5, agentMs: 10 },
      usage: { cpuMs: 1, memoryPeakBytes: 2, diskBytes: 3 },
    })
  })

  test('a second report of the same lease is refused', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { concurrency: 1 }), someTasks(2))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('the lease is there', () => worker.held.size === 1)
    const [lease] = worker.held.values()
    if (!lease) return
    worker.report(lease, DONE)
    worker.report(lease, { kind: 'returned', reward: 0 })
    const settled = () => worker.events.filter(({ kind }) => kind === 'settled')
    await until('both are answered', () => settled().length === 2)
    expect(settled()).toMatchObject([{ accepted: true }, { accepted: false }])
    const { rows } = await simulation.coordinator.getResults('default', 'a', { waitMs: 1 })
    expect(rows.map(({ reward }) => reward)).toEqual([1])
  })

  test('a token that is not the lease’s, or a lease that is none, is refused', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('the lease is there', () => worker.held.size === 1)
    const [lease] = worker.held.values()
    if (!lease) return
    const measured = { agentMs: 1, modelMs: 0, lagMs: 0, flags: [] }
    for (const wrong of [{ lease: 'ls_nonsense' }, { token: lease.token + 1 }]) {
      const { lease: id, token } = { ...lease, ...wrong }
      worker.stream.receive({ kind: 'report', lease: id, token, report: DONE, ...measured })
      await until('it is answered', () => worker.events.at(-1)?.kind === 'settled')
      expect(worker.events.at(-1)).toMatchObject({ lease: id, accepted: false })
      worker.stream.receive({ kind: 'model_started', lease: id, token })
    }
    expect(await simulation.view('a')).toMatchObject({ counts: { running: 1, done: 0 } })
  })
})

describe('a worker', () => {
  test('that comes back keeps what it holds, also over a restart of the daemon', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(3))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('all are leased', () => worker.held.size === 3)
    const before = [...worker.held.keys()]
    const earlier = worker.stream
    await worker.reconnect()
    await earlier.done
    await simulation.restart()
    await expect(worker.stream.done).rejects.toMatchObject({ code: 'draining' })
    simulation.clock.advance(LIMITS.leaseMs / 2)
    await worker.reconnect(simulation.coordinator)
    expect([...worker.held.keys()]).toEqual(before)
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    const rows = await simulation.results('a')
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual(
      Array(3).fill([1, 'graded']),
    )
    expect(simulation.node.acquired).toHaveLength(3)
    await worker.stream.done
  })

  test('that loses its connection before its leases arrive is given them again, at nobody’s cost', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { retry: { infra: 0 } }), someTasks(3))
    const lost: string[] = []
    let breaks = true
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      loses: ({ lease }) => breaks && lost.push(lease) > 0,
      work: () => DONE,
    })
    // More often than an episode may have workers die on it.
    for (let time = 1; time <= 4; time++) {
      await until('all are on their way', () => lost.length === 3 * time)
      breaks = time < 4
      worker.stream.lost()
      await worker.reconnect()
    }
    const rows = await simulation.results('a')
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual(
      Array(3).fill([1, 'graded']),
    )
    expect(simulation.node.acquired).toHaveLength(3)
  })

  test('that loses its connection while it is offered leases gets each episode once', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { concurrency: 40 }), someTasks(40))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a', slots: 40 })
    for (let turn = 0; worker.held.size < 40; turn++) {
      // Each time at another moment between a decision and its effect.
      for (let wait = turn % 7; wait >= 0; wait--) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      await worker.reconnect()
    }
    const episodes = [...worker.held.values()].map(({ episode }) => episode)
    expect(new Set(episodes).size).toBe(40)
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    const rows = await simulation.results('a')
    expect(rows.map(({ attempt }) => attempt)).toEqual(Array(40).fill(1))
    expect(worker.events.filter((event) => event.kind === 'settled' && !event.accepted)).toEqual([])
  })

  test('is not told of a lease that it has just reported', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('the lease is there', () => worker.held.size === 1)
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    await until('it is answered', () => {
      worker.renew()
      return worker.held.size === 0
    })
    expect(worker.events.map(({ kind }) => kind)).toEqual(['lease', 'settled'])
  })

  test('that is silent for longer than a lease lives loses all, and no infra retry is spent', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { retry: { infra: 0 } }), someTasks(2))
    const silent = await startSimulatedWorker(simulation.coordinator, { run: 'a', number: 1 })
    await until('all are leased', () => silent.held.size === 2)
    const renewing = await startSimulatedWorker(simulation.coordinator, {
      ...{ run: 'a', number: 2 },
      work: () => DONE,
    })
    for (let passedMs = 0; passedMs <= LIMITS.leaseMs; passedMs += 15_000) {
      renewing.renew()
      await until('it is heard', () => simulation.coordinator.numbers().inputsWaiting === 0)
      simulation.clock.advance(15_000)
    }
    const rows = await simulation.results('a')
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [2, 'graded'],
      [2, 'graded'],
    ])
    expect(silent.events.filter(({ kind }) => kind === 'revoked')).toHaveLength(2)
  })

  test('whose connection ended and that does not come back loses all after a short grace', async () => {
    await using simulation = await simulate()
    const { coordinator, clock } = simulation
    await startRun(simulation, runCreate('a', { retry: { infra: 0 } }), someTasks(2))
    const killed = await startSimulatedWorker(coordinator, { run: 'a', number: 1 })
    await until('all are leased', () => killed.held.size === 2)
    const other = await startSimulatedWorker(coordinator, { run: 'a', number: 2, work: () => DONE })
    killed.stream.lost()
    await until('it is decided', () => coordinator.numbers().inputsWaiting === 0)
    clock.advance(LIMITS.reconnectMs)
    const rows = await simulation.results('a')
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [2, 'graded'],
      [2, 'graded'],
    ])
    expect(other.events.length).toBeGreaterThan(0)
  })

  test('that was given up is cut off when it is heard again', async () => {
    await using simulation = await simulate()
    await simulation.coordinator.createRun('default', runCreate('a'))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('it is known', async () => simulation.coordinator.numbers().inputsWaiting === 0)
    simulation.clock.advance(LIMITS.leaseMs + 1)
    await until('it is given up', async () => (await simulation.view('a')).reason !== undefined)
    worker.renew()
    await expect(worker.stream.done).rejects.toMatchObject({ code: 'draining' })
  })

  test('that says good-bye gives its leases to the others at once', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(2))
    const leaving = await startSimulatedWorker(simulation.coordinator, { run: 'a', number: 1 })
    await until('all are leased', () => leaving.held.size === 2)
    await startSimulatedWorker(simulation.coordinator, { run: 'a', number: 2, work: () => DONE })
    leaving.stream.left()
    leaving.stream.lost()
    expect(await simulation.results('a')).toHaveLength(2)
  })

  test('is told of a lease that it has no more', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('the lease is there', () => worker.held.size === 1)
    const [lease] = worker.held.values()
    if (!lease) return
    const stale = { lease: lease.lease, token: lease.token + 1 }
    worker.stream.receive({ kind: 'renew', leases: [lease, stale], lagMs: 0 })
    expect(worker.events.slice(1)).toMatchObject([{ kind: 'revoked', lease: lease.lease }])
  })

  test('without any other left makes the run wait, and its sandboxes are given back', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(2))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('all are leased', () => worker.held.size === 2)
    worker.stream.left()
    await until('it waits', async () => (await simulation.view('a')).state === 'waiting')
    await until('no sandbox is held', () => simulation.node.living.size === 0)
    expect((await simulation.view('a')).reason).toMatch(/worker/)
    await startSimulatedWorker(simulation.coordinator, { run: 'a', number: 2, work: () => DONE })
    expect(await simulation.results('a')).toHaveLength(2)
  })
})

describe('a report', () => {
  const wrong: [string, WorkerReport][] = [
    ['NaN', { kind: 'returned', reward: Number.NaN }],
    ['no reward', { kind: 'returned' }],
    ['data that is not JSON', { kind: 'returned', reward: 1, dataJson: '{' }],
    ['large data inline', { kind: 'returned', reward: 1, dataJson: `"${'x'.repeat(40_000)}"` }],
    ['a blob that is not there', { kind: 'returned', reward: 1, dataBlob: 'sha256:00' }],
    ['long causes', { kind: 'threw', cause: Array(16).fill('\u0001'.repeat(4_096)) }],
  ]
  test.each(wrong)('with %s is an episode_error', async (_, report) => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(1))
    await startSimulatedWorker(simulation.coordinator, { run: 'a', work: () => report })
    const [row] = await simulation.results('a')
    expect(row).toMatchObject({ outcome: 'episode_error', valid: false, reward: null })
    expect(simulation.warnings).toEqual([])
  })

  test('keeps its data as a blob for as long as the run', async () => {
    await using simulation = await simulate()
    const { engine, coordinator } = simulation
    const { digest } = await engine.blobs.put(Buffer.from('"large"'))
    await startRun(simulation, runCreate('a'), someTasks(1))
    await startSimulatedWorker(coordinator, {
      run: 'a',
      work: () => ({ kind: 'returned', reward: 1, dataBlob: digest }),
    })
    expect(await simulation.results('a')).toMatchObject([{ data: null, dataBlob: digest }])
    const pins = async () => (await engine.blobs.pins('run/')).pins.map((pin) => pin.digest)
    expect(await pins()).toEqual([digest])
    await coordinator.deleteRun('default', 'a')
    expect(await pins()).toEqual([])
  })
})
