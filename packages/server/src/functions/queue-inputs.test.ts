import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { PROJECT, TestQueues } from './testing/open-queues.ts'

test('a function that could not be loaded is tried anew when its queue is opened again', async () => {
  await using at = await TestQueues.open()
  at.containers.failure = new SandlotError('image_unknown', 'there is no such image')
  await at.withFunction('q')
  await at.add('q', ['a'])
  await at.passUntil(300, async () => (await at.queues.get(PROJECT, 'q')).trouble !== null)
  at.containers.failure = undefined
  await at.withFunction('q')
  await at.resultsOf('q', 1)
  expect((await at.queues.get(PROJECT, 'q')).trouble).toBe(null)
})

test('an input that is kept for no task is let go of, and those of tasks stay', async () => {
  await using at = await TestQueues.open()
  await at.put('q')
  const { digest } = await at.engine.blobs.put(Buffer.from('"long"'))
  const put = (id: string, key: string) =>
    at.queues.putTasks(PROJECT, 'q', { tasks: [{ id, key, blob: digest }] })
  await put('id-00001', 'k')
  await put('id-00002', 'k')
  const pins = async () => (await at.engine.blobs.pins('queue/')).pins.length
  expect(await pins()).toBe(2)
  await at.withFunction('q')
  await at.resultsOf('q', 1)
  // Its own is let go of with the task, the other at the second look after that; the bundle stays.
  await at.passUntil(600_000, async () => (await pins()) === 1)
})

test('it is let go of also while others always wait, and a dead letter keeps its own', async () => {
  await using at = await TestQueues.open(() => {
    throw new RangeError('no good')
  })
  await at.withFunction('q', { retry: { error: 0 } })
  const put = async (id: string, key: string, text: string, more: { delay?: number } = {}) => {
    const { digest } = await at.engine.blobs.put(Buffer.from(JSON.stringify(text)))
    await at.queues.putTasks(PROJECT, 'q', { tasks: [{ id, key, blob: digest, ...more }] })
  }
  await put('id-dead1', 'dead', 'one that fails')
  await at.resultsOf('q', 1)
  await put('id-wait1', 'waits', 'one that waits', { delay: 20 * 24 * 3_600_000 })
  await put('id-wait2', 'waits', 'nobody’s')
  const inputs = async () =>
    (await at.engine.blobs.pins('queue/')).pins.flatMap(
      ({ name }) => /\/in\/(.*)/.exec(name)?.[1] ?? [],
    )
  expect(await inputs()).toEqual(['id-dead1', 'id-wait1', 'id-wait2'])
  await at.passUntil(600_000, async () => (await inputs()).length < 3)
  expect(await inputs()).toEqual(['id-dead1', 'id-wait1'])
  at.containers.handler = (json) => json
  expect(await at.queues.replay(PROJECT, 'q', undefined)).toBe(1)
  expect((await at.resultsOf('q', 2)).at(-1)).toMatchObject({ ok: true, replay: 1 })
})

test.each(['', 'x/y', '\u0000', 'x'.repeat(600)])('%j names no task', async (task) => {
  await using at = await TestQueues.open()
  await at.put('q')
  const signal = new AbortController().signal
  const refused = { code: 'invalid_request' }
  await expect(at.queues.result(PROJECT, 'q', { task }, signal)).rejects.toMatchObject(refused)
  await expect(at.queues.dead(PROJECT, 'q', { after: task })).rejects.toMatchObject(refused)
  expect(await at.queues.replay(PROJECT, 'q', [task])).toBe(0)
  await expect(
    at.queues.results(PROJECT, 'q', { after: `${task}!` }, signal),
  ).rejects.toMatchObject(refused)
})
