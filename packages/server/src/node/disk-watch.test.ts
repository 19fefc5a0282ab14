import { createHash } from 'node:crypto'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { startTestDaemon } from '../testing/daemon.ts'
import { openNode } from '../testing/node.ts'
import { DiskWatch } from './disk-watch.ts'

const GIB = 2 ** 30

function setup(freeBytesMin = GIB) {
  const clock = createManualClock()
  const found = { freeBytes: 10 * GIB, totalBytes: 200 * GIB }
  const log = pino({ level: 'silent' })
  const watch = DiskWatch.open({
    ...{ directory: '/data', freeBytesMin, clock, log },
    look: () => ({ ...found }),
  })
  const become = (freeBytes: number) => {
    found.freeBytes = freeBytes
    clock.advance(SERVER_LIMITS.diskEveryMs)
  }
  return { watch, become, found }
}

test('below the least nothing is admitted, and a little above it still isn’t', async () => {
  const { watch, become } = setup()
  using _ = watch
  expect(watch.why).toBeUndefined()
  watch.check()
  become(GIB - 1)
  expect(watch.why).toMatch('the disk of /data has 1024 MiB free')
  expect(() => watch.check()).toThrow(expect.objectContaining({ code: 'disk_full' }))
  become(GIB + 1)
  expect(watch.isLow).toBe(true)
  become(1.25 * GIB)
  expect(watch.isLow).toBe(false)
  watch.check()
})

test('who is about to be refused is let in where room was made just now', () => {
  const { watch, become, found } = setup()
  using _ = watch
  become(1)
  expect(() => watch.check()).toThrow()
  found.freeBytes = 10 * GIB
  watch.check()
  expect(watch.isLow).toBe(false)
})

test('without a setting it is a share of a small disk, and no more than a gibibyte', async () => {
  const { watch } = setup(0)
  using _ = watch
  expect(watch.leastBytes).toBe(GIB)
  const look = () => ({ freeBytes: 2 ** 29, totalBytes: 2 ** 30 })
  const options = { directory: '/data', freeBytesMin: 0, clock: createManualClock(), look }
  using small = DiskWatch.open({ ...options, log: pino({ level: 'silent' }) })
  expect(small.leastBytes).toBe(2 ** 30 * SERVER_LIMITS.diskFreeShare)
})

test('a body is cut off where it would take what is kept free, also between two looks', async () => {
  const { watch, found } = setup()
  using _ = watch
  let sentBytes = 0
  async function* body() {
    for (;;) {
      yield new Uint8Array(2 ** 20)
      sentBytes += 2 ** 20
      found.freeBytes -= 64 * 2 ** 20
    }
  }
  const takeAll = async () => {
    for await (const chunk of watch.bound(body())) expect(chunk.byteLength).toBe(2 ** 20)
  }
  await expect(takeAll()).rejects.toMatchObject({ code: 'disk_full' })
  expect(found.freeBytes).toBeGreaterThan(GIB - 64 * SERVER_LIMITS.diskEveryBytes)
  expect(sentBytes).toBeLessThan(160 * 2 ** 20)
})

test('who may run things can’t fill the disk with contents either', async () => {
  await using at = await startTestDaemon({ daemon: { diskFreeBytes: 2 ** 60 } })
  const made = await at.ask('POST', '/v1/keys', { json: { scope: 'run', project: 'a' } })
  const { key } = made.json as { key: string }
  const path = `/v1/blobs/sha256:${createHash('sha256').update('body').digest('hex')}`
  const refused = await at.ask('PUT', path, { key, body: 'body' })
  expect(refused).toMatchObject({ status: 507, code: 'disk_full' })
  expect((await at.ask('HEAD', path, { key })).status).toBe(404)
})

test('sandboxes wait for the disk as they do for room, and what lives goes on', async () => {
  const { watch, become } = setup()
  using _ = watch
  await using at = await openNode()
  watch.govern(at.node.room)
  const before = await at.node.acquire(at.request())
  become(1)
  const refused = at.node.acquire(at.request())
  await expect(refused).rejects.toMatchObject({
    ...{ code: 'capacity', retry: true, fault: 'capacity' },
    message: expect.stringContaining('the disk of /data'),
    hint: expect.stringContaining('Free space'),
  })
  expect((await at.node.capacity(before.resources)).free).toBe(0)
  await at.node.exec({ sandbox: before.sandbox, exec: 'ex_00000000000000000001', argv: ['true'] })
  const waiting = at.node.acquire(at.request({ waitMs: 60_000 }))
  await expect.poll(() => at.node.room.waiting).toBe(1)
  await at.node.release({ sandbox: before.sandbox, reason: 'over' })
  expect(at.node.room.waiting).toBe(1)
  become(10 * GIB)
  expect(await waiting).toMatchObject({ state: 'running' })
})
