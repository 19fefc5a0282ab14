import { completeResources } from '@sandlot/protocol'
import type { MemorySpace } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { healthHandler } from '../health.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { Serving } from '../serving.ts'
import { openNode } from '../testing/node.ts'
import { until } from '../testing/until.ts'

const GIB = 2 ** 30
const asking = (gib: number) => ({
  resources: completeResources({ memory: { request: gib * GIB, limit: 4 * GIB } }),
})

/** A node whose machine has 10 GiB of memory; of them one is kept free. */
async function open(more: Parameters<typeof openNode>[0] = {}) {
  const clock = createManualClock()
  const memory = { totalBytes: 10 * GIB, availableBytes: 9 * GIB }
  const room = { cpus: 1_000, memoryBytes: 100 * GIB, sandboxes: 1_000 }
  const at = await openNode({
    memory: (): MemorySpace => ({ ...memory }),
    ...more,
    node: { clock, room, memoryFreeBytes: GIB, ...more.node },
  })
  /** What others take or give back is seen by the next look. */
  const become = async (availableBytes: number) => {
    memory.availableBytes = availableBytes
    clock.advance(SERVER_LIMITS.memoryEveryMs)
    await until(() => at.node.room.memory.availableBytes === availableBytes)
  }
  const uses = (sandbox: string, memoryBytes: number) => {
    const found = at.driver.machine.all().find(({ id }) => id === sandbox)
    if (found) found.usage = { ...found.usage, memoryBytes }
  }
  return { at, become, uses, clock }
}

test('what is promised and not used yet is promised to nobody else', async () => {
  const { at: opened, become, uses } = await open()
  await using at = opened
  const first = await at.node.acquire(at.request(asking(3)))
  const second = await at.node.acquire(at.request(asking(3)))
  for (const { sandbox } of [first, second]) uses(sandbox, 0)
  const third = () => at.node.acquire(at.request(asking(3)))
  // Of 9 GiB, 6 are promised and one is kept free.
  await expect(third()).rejects.toMatchObject({
    ...{ code: 'capacity', retry: true, fault: 'capacity' },
    message: expect.stringMatching(
      /3 GiB are asked for, the machine has 9 GiB of memory left, 6 GiB of it promised to sandboxes that don't use it yet, and 1 GiB are kept free/,
    ),
    hint: expect.stringContaining('SANDLOT_MEMORY_FREE'),
  })
  expect((await at.node.capacity(asking(1).resources)).free).toBe(2)
  // One that uses what it was promised leaves as much as before.
  uses(first.sandbox, 3 * GIB)
  await become(6 * GIB)
  expect((await at.node.capacity(asking(1).resources)).free).toBe(2)
  // One that takes more than it was promised takes it from those that come.
  uses(first.sandbox, 4 * GIB)
  await become(5 * GIB)
  expect((await at.node.capacity(asking(1).resources)).free).toBe(1)
  const waiting = at.node.acquire(at.request({ ...asking(3), waitMs: 60_000 }))
  await until(() => at.node.room.waiting === 1)
  await at.node.release({ sandbox: first.sandbox, reason: 'over' })
  expect(at.node.room.waiting).toBe(1)
  await become(9 * GIB)
  expect(await waiting).toMatchObject({ state: 'running' })
})

test('below the least nobody is let in, also who wants little, until there is more than it', async () => {
  const { at: opened, become } = await open()
  await using at = opened
  const small = () => at.node.acquire(at.request())
  const lives = await small()
  await become(GIB / 2)
  await expect(small()).rejects.toMatchObject({
    code: 'capacity',
    message: expect.stringContaining('512 MiB of memory left'),
  })
  expect(at.node.room.memory.isLow).toBe(true)
  await at.node.exec({ sandbox: lives.sandbox, exec: 'ex_00000000000000000001', argv: ['true'] })
  await become(GIB * 1.1)
  await expect(small()).rejects.toMatchObject({ code: 'capacity' })
  await become(GIB * 1.5)
  await small()
  expect(at.node.room.memory.isLow).toBe(false)
})

test('who is about to be refused is let in where memory has become free just now', async () => {
  let availableBytes = GIB / 2
  const memory = () => ({ totalBytes: 10 * GIB, availableBytes })
  const { at: opened } = await open({ memory })
  await using at = opened
  await expect(at.node.acquire(at.request())).rejects.toMatchObject({ code: 'capacity' })
  availableBytes = 8 * GIB
  await at.node.acquire(at.request())
})

test('what waits in the pool gives way', async () => {
  const { at: opened, become } = await open({
    node: { pool: { min: 40, max: 40, idleMs: 600_000 }, creationsMax: 100 },
  })
  await using at = opened
  at.node.pool.fill()
  await until(() => at.node.pool.numbers.ready === 40)
  await become(GIB + 4 * SERVER_LIMITS.blankBytes)
  at.node.pool.look()
  await until(() => at.node.pool.numbers.ready === 22)
  await become(0)
  at.node.pool.look()
  await until(() => at.node.pool.numbers.ready === 0)
})

test('health tells what is promised and allowed of the machine', async () => {
  const { at: opened, become } = await open()
  await using at = opened
  const serving = new Serving()
  const { health } = healthHandler(serving, { why: undefined }, at.node.room)
  const ask = () => health({} as never)
  expect(await ask()).toMatchObject({ ok: false, state: 'starting' })
  serving.serve()
  await at.node.acquire(at.request(asking(1)))
  await at.node.acquire(at.request(asking(2)))
  expect(await ask()).toMatchObject({
    ok: true,
    load: {
      sandboxes: 2,
      cpu: { requests: 0.2, limits: 4 },
      memory: {
        ...{ total: 10 * GIB, free: 9 * GIB, kept: GIB },
        ...{ requests: 3 * GIB, limits: 8 * GIB },
      },
      overcommit: { memory: 0.8 },
    },
  })
  await become(1)
  expect(await ask()).toMatchObject({ nothingNew: expect.stringContaining('1 B of memory left') })
})

test('without a setting it is a share of a small machine, and no more than a gibibyte', async () => {
  const least = async (totalBytes: number) => {
    const memory = () => ({ totalBytes, availableBytes: totalBytes })
    await using at = await openNode({ memory })
    return at.node.room.memory.leastBytes
  }
  expect(await least(100 * GIB)).toBe(GIB)
  expect(await least(GIB)).toBe(GIB * SERVER_LIMITS.memoryFreeShare)
})
