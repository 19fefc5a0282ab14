import { completeResources } from '@sandlot/protocol'
import { DriverError } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { openNode } from '../testing/node.ts'
import { until } from '../testing/until.ts'
import { Node } from './node.ts'

const GIB = 2 ** 30

/** What a disk of `diskGib` takes of the machine's: a grader's part is an eighth. */
const large = (diskGib: number) => ({ resources: completeResources({ disk: diskGib * GIB }) })

/** A node whose machine has 100 GiB of disk; of them 5 are kept back. */
async function open(options: Omit<Parameters<typeof openNode>[0], 'disk'> = {}) {
  const disk = { totalBytes: 100 * GIB, freeBytes: 100 * GIB, heldBytes: 0 }
  return { disk, at: await openNode({ ...options, disk: () => disk }) }
}

test('no more disk is promised than the machine has, and what is given back goes to who waits', async () => {
  const { at: opened } = await open()
  await using at = opened
  const first = await at.node.acquire(at.request(large(40)))
  await at.node.acquire(at.request(large(40)))
  expect(at.node.room.used.diskBytes).toBe(90 * GIB)
  await expect(at.node.acquire(at.request(large(8)))).rejects.toMatchObject({
    code: 'capacity',
    message: expect.stringContaining('90 GiB of 95 GiB of disk'),
  })
  // Memory is another matter.
  await at.node.acquire(at.request())
  expect(await at.node.capacity(large(4).resources)).toMatchObject({ sandboxes: 21, free: 1 })
  const waiting = at.node.acquire(at.request({ ...large(40), waitMs: 60_000 }))
  await until(() => at.node.room.waiting === 1)
  await at.node.release({ sandbox: first.sandbox, reason: 'over' })
  expect(await waiting).toMatchObject({ state: 'running', origin: 'cold' })
})

test('what others write leaves less, what sandboxes have written of theirs does not', async () => {
  const { at: opened, disk } = await open()
  await using at = opened
  await at.node.acquire(at.request(large(40)))
  Object.assign(disk, { freeBytes: 60 * GIB, heldBytes: 40 * GIB })
  await at.node.acquire(at.request(large(40)))
  Object.assign(disk, { freeBytes: 55 * GIB })
  await expect(at.node.acquire(at.request(large(2)))).rejects.toMatchObject({ code: 'capacity' })
})

test('a disk that the machine never had is a mistake, a machine without any says so', async () => {
  const { at: opened } = await open()
  await using at = opened
  await expect(at.node.acquire(at.request(large(90)))).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/resources.disk: 101.3 GiB .* gives 95 GiB in all/),
    hint: expect.stringContaining('smaller disk'),
  })
  await using other = await openNode({
    disk: () => {
      throw new DriverError('unsupported', 'the data directory is in memory', { hint: 'move it' })
    },
  })
  await expect(other.node.acquire(other.request(large(1)))).rejects.toMatchObject({
    code: 'unsupported',
    hint: 'move it',
  })
  expect(await other.node.capacity(large(1).resources)).toMatchObject({ sandboxes: 0 })
  await other.node.acquire(other.request())
})

test('only a blank that was made for it is taken', async () => {
  const { at: opened } = await open({ node: { pool: { min: 2, max: 8, idleMs: 600_000 } } })
  await using at = opened
  const filled = () => until(() => at.node.pool.numbers.ready === at.node.pool.numbers.target)
  at.node.pool.fill()
  const announced = { image: at.request().image, count: 5 }
  await at.node.expect({ ...announced, name: 'run', ...large(1) })
  expect(at.node.pool.numbers.target).toBe(2)
  await filled()
  expect(await at.node.acquire(at.request(large(1)))).toMatchObject({ origin: 'cold' })
  // Any other makes place for one of its sort.
  expect(await at.node.acquire(at.request())).toMatchObject({ origin: 'pool' })
  expect(await at.node.acquire(at.request(large(1)))).toMatchObject({ origin: 'cold' })
  await until(() => at.node.pool.numbers.target > 2)
  await filled()
  expect(await at.node.acquire(at.request(large(1)))).toMatchObject({ origin: 'pool' })
})

test('an ending tells what was on the disk, also of one that died alone', async () => {
  const { at: opened } = await open()
  await using at = opened
  const { sandbox } = await at.node.acquire(at.request(large(1)))
  const [machine] = at.driver.machine.all()
  if (machine) machine.usage = { ...machine.usage, diskBytes: 7 * GIB }
  const entry = at.node.sandboxes.entries.get(sandbox)
  expect(entry && (await at.node.usage(entry))).toMatchObject({ diskBytes: 7 * GIB })
  at.driver.kill(sandbox, 'lost')
  await until(async () => {
    const found = await at.node.find(sandbox)
    return found !== undefined && 'kind' in found
  })
  expect(await at.node.find(sandbox)).toMatchObject({ usage: { diskBytes: 7 * GIB } })
})

test('a sandbox of an earlier daemon keeps its part', async () => {
  const { at: opened } = await open()
  await using at = opened
  await at.node.acquire(at.request(large(40)))
  await at.node.close('keep')
  const next = await Node.open(at.given)
  await next.recover()
  expect(next.room.used.diskBytes).toBe(45 * GIB)
  await next.close('stop')
  expect(next.room.used.diskBytes).toBe(0)
})
