import { type Outcome, SANDBOX_ENDINGS, SandlotError, type WorkerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

async function leased(more: Parameters<typeof runCreate>[1] = {}) {
  const simulation = await simulate()
  await startRun(simulation, runCreate('a', more), someTasks(1))
  const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
  await until('the lease is there', () => worker.held.size === 1)
  const [lease] = worker.held.values()
  if (!lease) throw new Error('no lease')
  return { simulation, worker, lease }
}

describe('a sandbox that ends by itself', () => {
  const outcomes = {
    lost: 'infra_lost',
    protocol: 'infra_lost',
    oom_host: 'infra_lost',
    shutdown: 'infra_lost',
    oom_limit: 'sandbox_oom',
    expired: 'cancelled_user',
    stopped: 'cancelled_user',
  } satisfies Record<(typeof SANDBOX_ENDINGS)[number], Outcome>

  test.each(SANDBOX_ENDINGS)('%s: the worker is told, and its reward is void', async (kind) => {
    const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
    await using _ = simulation
    simulation.node.kill(lease.sandbox, kind)
    await until('it is told', () => worker.events.some((event) => event.kind === 'revoked'))
    worker.report(lease, DONE)
    const [row] = await overTime(simulation, worker, 10)
    expect(row?.outcome).toBe(outcomes[kind])
    expect(row?.reward).toBe(kind === 'oom_limit' ? 0 : null)
    expect(row?.cause.join()).toContain(`killed: ${kind}`)
  })

  test('or was cut off from its network by a daemon’s end: its reward is void', async () => {
    const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
    await using _ = simulation
    simulation.node.cutOff.add(lease.sandbox)
    worker.report(lease, DONE)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'infra_lost', reward: null, valid: false })
    expect(row?.cause).toEqual([
      'the sandbox was cut off from its network',
      expect.stringContaining('broke off with the daemon'),
    ])
  })

  test('is found by comparing when the news of it was lost', async () => {
    const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
    await using _ = simulation
    simulation.node.kill(lease.sandbox, 'lost', true)
    simulation.clock.advance(50_000)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'infra_lost', reward: null })
  })

  test('by a person’s stop is cancelled_user, whatever its worker says', async () => {
    for (const noticed of ['by the worker', 'by comparing']) {
      const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
      await using _ = simulation
      await simulation.node.release({ sandbox: lease.sandbox, reason: 'stopped by its client' })
      if (noticed === 'by the worker') worker.report(lease, { kind: 'threw', cause: ['gone'] })
      else simulation.clock.advance(50_000)
      const [row] = await overTime(simulation, worker, 10)
      expect(row).toMatchObject({ outcome: 'cancelled_user', valid: false, reward: null })
    }
  })

  test('by a person’s stop is noticed at once', async () => {
    const { simulation, worker, lease } = await leased()
    await using _ = simulation
    const reason = 'stopped by its client'
    await simulation.node.release({ sandbox: lease.sandbox, reason, by: 'other' })
    const [row] = await simulation.results('a')
    expect(row).toMatchObject({ outcome: 'cancelled_user', valid: false, reward: null, attempt: 1 })
    expect(worker.events.at(-1)).toMatchObject({ kind: 'revoked' })
  })

  test('by a person’s stop while it was being created is cancelled_user', async () => {
    const asked = Promise.withResolvers<string>()
    const open = Promise.withResolvers<void>()
    await using simulation = await simulate({
      onAcquire({ sandbox }) {
        asked.resolve(sandbox)
        return open.promise
      },
    })
    await startRun(simulation, runCreate('a'), someTasks(1))
    await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await simulation.node.release({ sandbox: await asked.promise, reason: 'stopped by its client' })
    open.resolve()
    const [row] = await simulation.results('a')
    expect(row).toMatchObject({ outcome: 'cancelled_user', valid: false, attempt: 1 })
  })

  test('while no daemon was there is found by the next one', async () => {
    const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
    await using _ = simulation
    await simulation.coordinator[Symbol.asyncDispose]()
    simulation.node.kill(lease.sandbox, 'lost')
    await simulation.restart()
    await worker.reconnect(simulation.coordinator)
    worker.report(lease, DONE)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'infra_lost', reward: null })
  })

  test('before its release overrules the reward that was reported', async () => {
    const { simulation, worker, lease } = await leased({ retry: { infra: 0 } })
    await using _ = simulation
    simulation.node.kill(lease.sandbox, 'lost', true)
    worker.report(lease, DONE)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'infra_lost', reward: null })
  })

  test('is tried again in another one while a retry is left', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: ({ attempt }) => (attempt === 1 ? undefined : DONE),
    })
    await until('the lease is there', () => worker.held.size === 1)
    const [first] = worker.held.values()
    simulation.node.kill(first?.sandbox ?? '', 'lost')
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'graded', reward: 1, attempt: 2 })
    expect(row?.attempts.map(({ outcome }) => outcome)).toEqual(['infra_lost', 'graded'])
    expect(row?.sandbox).not.toBe(first?.sandbox)
    expect(simulation.node.living.size).toBe(0)
  })
})

describe('a sandbox that is nobody’s', () => {
  test('is released by the next daemon', async () => {
    const { simulation, lease } = await leased()
    await using _ = simulation
    const { node } = simulation
    const known = node.living.get(lease.sandbox)
    const { id } = await simulation.view('a')
    const strays = [`sb_${id.slice(3, 13)}0000990001`, 'sb_aaaaaaaaaaaaaaaaaaaa']
    const clients = 'sb_bbbbbbbbbbbbbbbbbbbb'
    for (const sandbox of [...strays, clients]) {
      const owner = sandbox === clients ? 'client' : 'a/t99/1'
      if (known) node.living.set(sandbox, { ...known, sandbox, owner })
    }
    await simulation.restart()
    await until('they are gone', () => strays.every((sandbox) => !node.living.has(sandbox)))
    expect([...node.living.keys()].sort()).toEqual([clients, lease.sandbox].sort())
  })
})

describe('a creation that fails', () => {
  test.each([
    ['image_unknown', 'task_invalid', 1],
    ['create_failed', 'infra_create', 3],
    ['internal', 'infra_create', 3],
  ] as const)('with %s is %s', async (code, outcome, attempts) => {
    await using simulation = await simulate({
      onAcquire() {
        throw new SandlotError(code, 'no such luck')
      },
    })
    await startRun(simulation, runCreate('a'), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome, reward: null, attempt: attempts })
    expect(row?.cause.join()).toContain('no such luck')
  })

  test('for want of room is made again until there is some, and is told soon enough that there is none', async () => {
    const waits: (number | undefined)[] = []
    await using simulation = await simulate({
      onAcquire({ waitMs }) {
        waits.push(waitMs)
        if (waits.length <= 5) throw new SandlotError('capacity', 'all is taken')
      },
    })
    const run = runCreate('a', { timeout: { create: 10_000 }, retry: { infra: 0 } })
    await startRun(simulation, run, someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('the lease is there', () => {
      if (simulation.isIdle) simulation.clock.advance(100)
      return worker.held.size === 1
    })
    for (const lease of worker.held.values()) worker.report(lease, DONE)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'graded', attempt: 6 })
    expect(row?.attempts[0]).toMatchObject({ outcome: null, cause: ['all is taken'] })
    // What is left of the time is for the creation.
    expect(waits[0]).toBe(5_000)
  })

  test('by taking too long is given up, and what came of it is released', async () => {
    let open = () => {}
    await using simulation = await simulate({
      onAcquire: () => new Promise<void>((resolve) => (open = resolve)),
    })
    const run = runCreate('a', { timeout: { create: 100 }, retry: { infra: 0 } })
    await startRun(simulation, run, someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
    await until('it is being created', async () => (await simulation.view('a')).counts.running > 0)
    const [row] = await overTime(simulation, worker, 10)
    expect(row).toMatchObject({ outcome: 'infra_create', valid: false })
    open()
    await until('nothing lives', () => simulation.node.living.size === 0)
  })
})
