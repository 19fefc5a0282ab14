import { mkdir, writeFile } from 'node:fs/promises'
import { completeResources } from '@sandlot/protocol'
import { FakeDriver, type FakeDriverOptions, type SandboxSpec } from '@sandlot/runtime'
import { temporaryDirectory } from '@sandlot/testkit'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../../limits.ts'
import { until } from '../../testing/until.ts'
import { Checkpoints } from '../checkpoints.ts'
import { Creations } from '../creations.ts'
import { machineRoom } from '../machine-room.ts'
import { type MemoryAhead, type PoolSettings, SandboxPool } from './pool.ts'

const MIB = 2 ** 20
const { refillDelayMs, expectMs, poolLookMs } = SERVER_LIMITS
const limits = { memoryBytes: 64 * MIB, cpus: 1, pidsMax: 64, diskBytes: 16 * MIB, nofileMax: 256 }
const layers = [{ digest: 'sha256:a', path: '/a' }]
const box = { layers, limits, hostname: 'box' }

interface Given extends FakeDriverOptions {
  readonly settings?: Partial<PoolSettings>
  readonly memoryBytes?: number
  readonly idleProcessors?: () => number
}

async function openPool({ settings, ...given }: Given = {}) {
  const { memoryBytes = 2 ** 32, idleProcessors = () => 100, ...options } = given
  const stack = new AsyncDisposableStack()
  const { path } = stack.use(await temporaryDirectory())
  const driver = new FakeDriver({ capabilities: { memorySnapshot: true }, ...options })
  const checkpoints = new Checkpoints(path)
  const sizes: Promise<number>[] = []
  const sizeBytes = checkpoints.sizeBytes.bind(checkpoints)
  checkpoints.sizeBytes = (name) => {
    const size = sizeBytes(name)
    sizes.push(size)
    return size
  }
  const room = machineRoom(driver, { cpus: 64, memoryBytes, sandboxes: 100 })
  const clock = createManualClock()
  const pool = new SandboxPool({
    ...{ driver, checkpoints, room, clock, idleProcessors },
    creations: new Creations(4),
    log: pino({ level: 'silent' }),
    settings: { min: 3, max: 20, idleMs: 600_000, ...settings },
  })
  stack.defer(() => pool.close())
  const spec = (id: string): SandboxSpec => ({
    ...{ id, ...box, detachedMs: 60_000, checkpointable: true },
  })
  return {
    ...{ driver, checkpoints, room, clock, pool, spec },
    /** Saved memory of so many bytes. */
    saved: async (name: string, bytes = 0): Promise<MemoryAhead> => {
      const original = await driver.create(spec('original'))
      await driver.checkpoint(original, checkpoints.path(name), { leaveRunning: false })
      await mkdir(checkpoints.path(name), { recursive: true })
      await writeFile(`${checkpoints.path(name)}/pages`, Buffer.alloc(bytes))
      return { checkpoint: name, layers, limits }
    },
    /** The pool knows how large what it was told of is. */
    measured: () => Promise.all(sizes),
    ready: (count: number, kind: 'numbers' | 'copies' = 'numbers') =>
      until(() => pool[kind].ready === count && pool[kind].starting === 0),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

describe('blanks', () => {
  test('a taken blank is replaced after its owner had the processors for a while', async () => {
    await using at = await openPool()
    at.pool.fill()
    await at.ready(3)
    expect(at.pool.take(box)).toBeDefined()
    at.clock.advance(refillDelayMs - 1)
    // The second one prolongs nothing.
    expect(at.pool.take(box)).toBeDefined()
    expect(at.pool.numbers).toMatchObject({ ready: 1, starting: 0, hits: 2 })
    at.clock.advance(1)
    expect(at.pool.numbers).toMatchObject({ ready: 1, starting: 2 })
    await at.ready(3)
  })

  test('what is started next is made for who came last, and a miss makes room for them', async () => {
    await using at = await openPool({ settings: { min: 2 } })
    const started: string[] = []
    const createBlank = at.driver.createBlank.bind(at.driver)
    at.driver.createBlank = (options = {}) => {
      const { world, layers = [] } = options
      started.push(world ? `world ${world.hostname}` : layers.map(({ digest }) => digest).join())
      return createBlank(options)
    }
    at.pool.fill()
    await at.ready(2)
    const takeFor = async (hostname: string) => {
      at.pool.take({ ...box, hostname })
      at.clock.advance(refillDelayMs)
      await at.ready(2)
    }
    await takeFor('one')
    expect(started).toEqual(['', '', 'world one'])
    for (let take = 1; take <= SERVER_LIMITS.takesAlike; take++) await takeFor('two')
    // The open world of the other sort stood in the way of one of their own.
    expect(started.slice(3)).toEqual(['sha256:a', 'sha256:a', 'sha256:a', 'world two', 'sha256:a'])
  })

  test('more wait after a burst that found too few, up to the most', async () => {
    await using at = await openPool()
    at.pool.fill()
    await at.ready(3)
    const taken = Array.from({ length: 8 }, () => at.pool.take(box))
    expect(taken.filter((blank) => blank !== undefined)).toHaveLength(3)
    expect(at.pool.numbers).toMatchObject({ hits: 3, misses: 5 })
    at.clock.advance(refillDelayMs)
    await at.ready(8)
    for (let n = 0; n < 50; n++) at.pool.take(box)
    at.clock.advance(refillDelayMs)
    await at.ready(20)
    // As long as that is remembered.
    at.clock.advance(600_000 + poolLookMs)
    await at.ready(0)
  })

  test('beyond the least they are started as fast as processors have nothing to do', async () => {
    let idle = 2
    await using at = await openPool({ idleProcessors: () => idle, settings: { max: 100 } })
    at.pool.fill()
    await at.ready(3)
    at.pool.expect('run', 50)
    const perLook = Math.floor((idle * poolLookMs) / SERVER_LIMITS.startProcessorMs)
    await at.ready(3 + perLook)
    idle = 0
    at.clock.advance(poolLookMs)
    await at.ready(4 + perLook)
    // The least is made up for at once.
    for (let n = 0; n < 4 + perLook; n++) at.pool.take(box)
    at.clock.advance(refillDelayMs)
    await at.ready(3)
  })

  test('after an idle time none is left, and the next take wakes it', async () => {
    await using at = await openPool({ settings: { idleMs: 10_000 } })
    at.pool.fill()
    await at.ready(3)
    const room = at.room.occupy(completeResources(undefined))
    at.clock.advance(60_000)
    expect(at.pool.numbers.ready).toBe(3)
    room[Symbol.dispose]()
    at.clock.advance(9_000)
    expect(at.pool.numbers.ready).toBe(3)
    at.clock.advance(10_000)
    expect(at.pool.numbers).toMatchObject({ target: 0, ready: 0, starting: 0 })
    await until(() => at.driver.machine.size === 0)
    expect(at.pool.take(box)).toBeUndefined()
    at.clock.advance(refillDelayMs)
    await at.ready(3)
  })

  test('no more wait than a quarter of the memory, nor than is free', async () => {
    await using at = await openPool({ settings: { min: 20 }, memoryBytes: 400 * MIB })
    at.pool.fill()
    await at.ready(8)
    const { bytes } = at.pool
    expect(bytes).toEqual({ used: 96 * MIB, most: 100 * MIB })
    const taken = [300, 60].map((mib) => {
      const resources = completeResources(undefined)
      const memory = { ...resources.memory, request: mib * MIB }
      return at.room.occupy({ ...resources, memory })
    })
    at.clock.advance(refillDelayMs)
    expect(at.pool.numbers).toMatchObject({ target: 3, ready: 3 })
    for (const each of taken) each[Symbol.dispose]()
    at.clock.advance(refillDelayMs)
    await at.ready(8)
  })

  test('one that died is replaced, and never handed out', async () => {
    await using at = await openPool({ settings: { min: 1 } })
    at.pool.fill()
    await at.ready(1)
    const [blank] = at.driver.machine.all()
    at.driver.kill(blank?.hostId ?? '', 'lost')
    await until(() => at.pool.numbers.failures === 1)
    expect(at.pool.take(box)).toBeUndefined()
    at.clock.advance(SERVER_LIMITS.refillWaitMs)
    await at.ready(1)
    expect(at.pool.take(box)?.hostId).not.toBe(blank?.hostId)
  })

  test('starts that are not wanted any more are given up', async () => {
    await using at = await openPool({ onStart: () => 'hang', settings: { idleMs: 10_000 } })
    at.pool.fill()
    expect(at.pool.numbers).toMatchObject({ ready: 0, starting: 3 })
    at.clock.advance(11_000)
    expect(at.pool.numbers).toMatchObject({ ready: 0, starting: 0, failures: 0 })
  })

  test('a pool of none has nothing wait, of any kind', async () => {
    await using at = await openPool({ settings: { min: 0 } })
    const memory = await at.saved('sn_a')
    at.pool.fill()
    at.pool.expect('run', 5)
    at.pool.expect('run', 5, memory)
    expect(at.pool.takeCopy(memory)).toBeUndefined()
    at.clock.advance(poolLookMs)
    expect(at.pool.copies).toMatchObject({ target: 0, starting: 0, misses: 0 })
    expect(at.pool.numbers).toMatchObject({ target: 0, starting: 0, misses: 0 })
  })
})

describe('copies of saved memory', () => {
  test('wait once they were asked for, and go on as whoever takes them', async () => {
    await using at = await openPool()
    const memory = await at.saved('sn_a')
    at.pool.fill()
    expect(at.pool.takeCopy(memory)).toBeUndefined()
    await until(() => at.pool.copies.target === 1)
    at.clock.advance(refillDelayMs)
    await at.ready(1, 'copies')
    const blank = at.pool.takeCopy(memory)
    if (!blank) throw new Error('none waits')
    expect((await at.driver.checkout(blank, at.spec('sb_1'))).id).toBe('sb_1')
    expect(at.pool.copies).toMatchObject({ hits: 1, misses: 1 })
  })

  test('wait when they were announced, and go when nobody came', async () => {
    await using at = await openPool()
    const memory = await at.saved('sn_a')
    at.pool.fill()
    at.pool.expect('run', 6, memory)
    await at.ready(6, 'copies')
    for (let n = 0; n < 6; n++) expect(at.pool.takeCopy(memory)).toBeDefined()
    at.pool.expect('other', 9, await at.saved('sn_b'))
    at.clock.advance(refillDelayMs)
    await at.ready(15, 'copies')
    at.clock.advance(expectMs)
    // Those of the run's kind are remembered.
    await at.ready(6, 'copies')
    at.clock.advance(600_000)
    await at.ready(0, 'copies')
  })

  test('are started in turn with other kinds, none of which waits for all of another', async () => {
    await using at = await openPool({ idleProcessors: () => 0, settings: { max: 100 } })
    at.pool.fill()
    await at.ready(3)
    at.pool.expect('run', 50)
    await at.ready(4)
    at.pool.expect('other', 2, await at.saved('sn_a'))
    await at.measured()
    for (let n = 0; n < 4; n++) {
      at.clock.advance(poolLookMs)
      await until(() => at.pool.numbers.starting + at.pool.copies.starting === 0)
    }
    expect(at.pool.copies.ready).toBe(2)
  })

  test('share the memory with blanks, by what each takes', async () => {
    await using at = await openPool({ settings: { max: 100 }, memoryBytes: 800 * MIB })
    const memory = await at.saved('sn_a', 21 * MIB)
    at.pool.fill()
    await at.ready(3)
    at.pool.expect('run', 50, memory)
    // 200 MiB less three blanks of 12, by 40 each.
    await at.ready(4, 'copies')
    expect(at.pool.numbers.ready).toBe(3)
    expect(at.pool.bytes).toEqual({ used: 196 * MIB, most: 200 * MIB })
  })

  test('are stopped when what they were saved in is removed, and none comes after', async () => {
    await using at = await openPool()
    const memory = await at.saved('sn_a')
    at.pool.fill()
    await at.ready(3)
    at.pool.expect('run', 2, memory)
    await at.ready(2, 'copies')
    at.pool.expect('run', 4, memory)
    expect(at.pool.copies.starting).toBe(2)
    await at.checkpoints.remove('sn_a')
    expect(at.driver.machine.size).toBe(3)
    expect(await at.checkpoints.has('sn_a')).toBe(false)
    expect(at.pool.takeCopy(memory)).toBeUndefined()
    at.clock.advance(poolLookMs)
    expect(at.pool.copies).toMatchObject({ ready: 0, starting: 0 })
  })

  test('whose files are on the disk don’t wait: nobody was promised what they take', async () => {
    await using at = await openPool()
    const memory = await at.saved('sn_a')
    at.pool.fill()
    const large = { ...memory, limits: { ...limits, diskBytes: 2 ** 30 } }
    at.pool.expect('run', 2, large)
    expect(at.pool.takeCopy(large)).toBeUndefined()
    expect(at.pool.copies).toMatchObject({ target: 0, starting: 0, misses: 0 })
  })

  test('that this machine cannot restore are not tried again and again', async () => {
    await using at = await openPool()
    const memory = await at.saved('sn_a')
    at.pool.fill()
    let tries = 0
    const createBlank = at.driver.createBlank.bind(at.driver)
    at.driver.createBlank = (options) => {
      if (options?.checkpoint) tries += 1
      return createBlank(options)
    }
    at.pool.expect('run', 1, { ...memory, limits: { ...limits, pidsMax: 1 } })
    await until(() => at.pool.copies.failures === 1)
    for (let n = 0; n < 20; n++) {
      at.clock.advance(SERVER_LIMITS.refillWaitMsMax)
      at.pool.takeCopy(memory)
    }
    expect(tries).toBe(1)
    expect(at.pool.copies).toMatchObject({ target: 0, ready: 0 })
  })
})
