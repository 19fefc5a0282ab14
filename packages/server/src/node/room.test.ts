import { completeResources } from '@sandlot/protocol'
import { FakeDriver } from '@sandlot/runtime'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { machineRoom } from './machine-room.ts'

const GIB = 2 ** 30
const { signal } = new AbortController()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function open() {
  const room = machineRoom(new FakeDriver(), { cpus: 1_000, memoryBytes: 10 * GIB, sandboxes: 100 })
  const take = (gib: number, waitMs = 0) =>
    room.take(completeResources({ memory: { request: gib * GIB, limit: gib * GIB } }), {
      ...{ waitMs, signal },
    })
  return { room, take }
}

/** No time goes by meanwhile. */
async function waits(room: ReturnType<typeof machineRoom>, count: number): Promise<void> {
  while (room.waiting !== count) await new Promise((resolve) => setImmediate(resolve))
}

test('one that is too large for now lets others pass for half of its wait, then it holds them back', async () => {
  const { room, take } = open()
  const held = await take(6)
  const large = take(8, 10_000)
  await waits(room, 1)
  const small = await take(1)
  await vi.advanceTimersByTimeAsync(5_000)
  await expect(take(1)).rejects.toMatchObject({ code: 'capacity' })
  const behind = take(1, 20_000)
  await waits(room, 2)
  small[Symbol.dispose]()
  expect(room.waiting).toBe(2)
  held[Symbol.dispose]()
  await large
  await behind
  expect(room.used.sandboxes).toBe(2)
})

test('who waits behind it is let in when it has waited in vain', async () => {
  const { room, take } = open()
  await take(6)
  const large = expect(take(8, 10_000)).rejects.toMatchObject({ code: 'capacity' })
  await waits(room, 1)
  await vi.advanceTimersByTimeAsync(5_000)
  const behind = take(1, 20_000)
  await waits(room, 2)
  await vi.advanceTimersByTimeAsync(5_000)
  await large
  await behind
  expect(room).toMatchObject({ waiting: 0, used: { sandboxes: 2 } })
})

test('what there never is is told beforehand', async () => {
  const { room } = open()
  const asked = (gib: number) =>
    room.counts(completeResources({ memory: { request: gib * GIB, limit: gib * GIB } }))
  expect(await asked(11)).toMatchObject({
    never: expect.stringMatching(/resources.memory: 11 GiB are asked for, .* 10 GiB in all/),
    sandboxes: 0,
  })
  expect(await asked(9)).not.toHaveProperty('never')
})
