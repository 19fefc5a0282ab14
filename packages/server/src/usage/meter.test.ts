import { completeResources, newId } from '@sandlot/protocol'
import { FakeDriver, FakeMachine } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../coordinator/simulated/clock.ts'
import { decodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { Checkpoints } from '../node/checkpoints.ts'
import type { Entry } from '../node/entry.ts'
import { Node } from '../node/node.ts'
import type { AcquireRequest } from '../node/port.ts'
import { openStores } from '../testing/stores.ts'
import { until } from '../testing/until.ts'
import { idleOf, linesOf, totalOf } from './report.ts'

const WAIT = { waitMs: 0, signal: new AbortController().signal }
const PRICES = { currency: 'USD', cpuHour: 36, memoryGibHour: 0, diskGibHour: 0, gpuHour: 0 }
const BEAT_MS = SERVER_LIMITS.meterEveryMs
const GONE = { cpuMs: 0, networkBytes: 0 }

/** A machine that outlives its daemons, and a clock that the test drives. */
async function setup({ pool = 0, createMs = 0 } = {}) {
  const stack = new AsyncDisposableStack()
  const { directory, engine, images, image } = await openStores(stack)
  const machine = new FakeMachine()
  const manual = createManualClock(Date.parse('2026-03-01T10:00:00Z'))
  let beatsPlanned = 0
  const clock: ManualClock = {
    ...manual,
    after(delayMs, callback) {
      if (delayMs === BEAT_MS) beatsPlanned += 1
      return manual.after(delayMs, callback)
    },
  }
  const opened: { driver?: FakeDriver } = {}
  const open = async () => {
    const driver = new FakeDriver({
      ...{ machine, capabilities: { memorySnapshot: true } },
      onDress: () => void clock.advance(createMs),
    })
    opened.driver = driver
    const node = await Node.open({
      node: 'here',
      endpoint: () => 'http://here',
      ...{ engine, driver, images, clock, prices: PRICES, log: pino({ level: 'silent' }) },
      room: { cpus: 4, memoryBytes: 2 ** 32, sandboxes: 10 },
      pool: { min: pool, max: pool, idleMs: 600_000 },
      creationsMax: 4,
      checkpoints: new Checkpoints(`${directory}/checkpoints`),
    })
    await node.recover()
    return node
  }
  const request = (more: Partial<AcquireRequest> = {}): AcquireRequest => ({
    ...{ sandbox: newId('sandbox'), image: image.id, project: 'default', owner: 'client' },
    resources: completeResources(undefined),
    ...{ epoch: 0, checkpointable: true },
    ...more,
  })
  /** Time passes beat by beat, each of them to its end. */
  const live = async (ms: number) => {
    for (let left = ms; left > 0; left -= BEAT_MS) {
      const planned = beatsPlanned
      clock.advance(Math.min(left, BEAT_MS))
      if (left < BEAT_MS) return
      const nowMs = clock.now()
      await until(async () => {
        const alive = await engine.kv.get('usage-alive')
        return alive !== undefined && Number(decodeJson(alive.value)) === nowMs
      })
      // The next beat is planned once this one is over.
      await until(() => beatsPlanned > planned)
    }
  }
  const lines = (node: Node) => node.meter.ledger.lines(0, clock.now() + 3_600_000)
  return {
    ...{ open, request, clock, live, engine, lines },
    driver: () => opened.driver as FakeDriver,
    seconds: async (node: Node) => totalOf(await lines(node)).seconds,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a sandbox is metered from its open world to its end, and not while it comes up', async () => {
  await using at = await setup({ createMs: 3_000 })
  const node = await at.open()
  const entry = await node.sandboxes.acquire(at.request())
  at.clock.advance(60_000)
  const ended = await node.release({ sandbox: entry.id, reason: 'over' })
  // A tenth of a processor for a minute, at a cent a second.
  expect(ended.metered).toEqual({ ms: 60_000, micros: 60_000 })
  expect(totalOf(await at.lines(node))).toMatchObject({
    ...{ sandboxes: 1, seconds: 60, costMicros: 60_000 },
    allocated: { cpuSeconds: 6, diskGibSeconds: 0 },
  })
  await node.close('stop')
})

test('attempts are metered for their runs, retries in a line of their own', async () => {
  await using at = await setup()
  const node = await at.open()
  for (const owner of ['nightly/a/1', 'nightly/a/b/2', 'client', 'other/a/1']) {
    const { id } = await node.sandboxes.acquire(at.request({ owner }))
    at.clock.advance(10_000)
    await node.release({ sandbox: id, reason: 'over' })
  }
  const told = linesOf(await at.lines(node), 'run').map((line) => [
    ...[line.kind, line.run, line.seconds, line.retries.seconds, line.retries.costMicros],
  ])
  expect(told).toEqual([
    ['episode', 'nightly', 20, 10, 10_000],
    ['episode', 'other', 10, 0, 0],
    ['sandbox', undefined, 10, 0, 0],
  ])
  await node.close('stop')
})

test('whoever comes after a killed daemon meters the whole life of what lives on, once', async () => {
  await using at = await setup()
  const killed = await at.open()
  const { id } = await killed.sandboxes.acquire(at.request())
  await at.live(4 * BEAT_MS)
  await killed.close('keep')
  at.clock.advance(30_000)
  const node = await at.open()
  at.clock.advance(50_000)
  await node.release({ sandbox: id, reason: 'over' })
  expect(await at.seconds(node)).toBe((4 * BEAT_MS + 80_000) / 1_000)
  await node.close('stop')
})

test('what had ended when its daemon was killed is recorded by the next, once', async () => {
  await using at = await setup()
  const killed = await at.open()
  const { id } = await killed.sandboxes.acquire(at.request())
  at.clock.advance(10_000)
  await killed.release({ sandbox: id, reason: 'over' })
  // Nothing was written of it but its ending: the ledger waits for the clock.
  for (let round = 0; round < 3; round++) {
    const node = await at.open()
    expect(await at.seconds(node)).toBe(10)
    await node.close('stop')
  }
})

test('of one that was opened just before the kill no more than a beat is lost, and nothing invented', async () => {
  await using at = await setup()
  const killed = await at.open()
  const first = await killed.sandboxes.acquire(at.request())
  await at.live(BEAT_MS)
  at.clock.advance(1_000)
  const { id } = await killed.sandboxes.acquire(at.request())
  await killed.release({ sandbox: first.id, reason: 'over' })
  const before = await at.seconds(killed)
  await killed.close('keep')
  at.clock.advance(60_000)
  const node = await at.open()
  await node.release({ sandbox: id, reason: 'over' })
  const seconds = (await at.seconds(node)) - before
  expect(seconds).toBeLessThanOrEqual(60)
  expect(seconds).toBeGreaterThanOrEqual(60 - BEAT_MS / 1_000)
  await node.close('stop')
})

test('what died while no daemon was there is metered up to when one was last', async () => {
  await using at = await setup()
  const killed = await at.open()
  const { id } = await killed.sandboxes.acquire(at.request())
  await at.live(4 * BEAT_MS)
  await killed.close('keep')
  at.driver().kill(id, 'lost')
  at.clock.advance(3_600_000)
  const node = await at.open()
  expect(await at.seconds(node)).toBe((4 * BEAT_MS) / 1_000)
  const ended = await node.release({ sandbox: id, reason: 'over' })
  expect(ended.metered?.ms).toBe(4 * BEAT_MS)
  await node.close('stop')
  const again = await at.open()
  expect(await at.seconds(again)).toBe((4 * BEAT_MS) / 1_000)
  await again.close('stop')
})

test('a pause is not metered, also not by a daemon that finds it', async () => {
  await using at = await setup()
  const node = await at.open()
  const entry = await node.sandboxes.acquire(at.request())
  at.clock.advance(10_000)
  await node.sandboxes.memory.pause(entry)
  expect(await at.seconds(node)).toBe(10)
  at.clock.advance(3_600_000)
  await node.close('keep')
  const next = await at.open()
  const found = next.sandboxes.entries.get(entry.id) as Entry
  await next.sandboxes.memory.resume(found, WAIT)
  expect(next.meter.stretchOf(found.record, at.clock.now(), GONE)).toMatchObject({ ms: 0 })
  at.clock.advance(5_000)
  await next.release({ sandbox: entry.id, reason: 'over' })
  expect(totalOf(await at.lines(next))).toMatchObject({ seconds: 15, sandboxes: 1 })
  await next.close('stop')
})

test('what waits in the pool is a line of its own', async () => {
  await using at = await setup({ pool: 2 })
  const node = await at.open()
  node.pool.fill()
  await until(() => node.pool.numbers.ready === 2)
  await at.live(14 * BEAT_MS)
  const lines = await at.lines(node)
  expect(totalOf(lines)).toMatchObject({ seconds: 0, costMicros: null })
  expect(idleOf(lines).sandboxSeconds).toBeGreaterThan(0)
  expect(idleOf(lines).memoryGibSeconds).toBeGreaterThan(0)
  await node.close('stop')
})
