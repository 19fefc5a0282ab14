import { expect, test } from 'vitest'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'

const LEASE_MS = 60_000

/** Messages that stand, read without taking them. */
export function describeQueueList(makeEngine: MakeEngine): void {
  test('lists what stands below a prefix in the order of puts, whoever holds it', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('a/1', bytes('done'))
    for (const lease of await queue.lease('a/1', { max: 1, leaseMs: LEASE_MS }))
      await queue.ack(lease)
    const { id } = await queue.put('a/1', bytes('held'), { priority: 5 })
    await queue.put('b', bytes('other'))
    await queue.put('a/2', bytes('later'), { delayMs: LEASE_MS })
    await queue.put('a/1', bytes('ready'))
    await queue.lease('a/1', { max: 1, leaseMs: LEASE_MS })
    const { messages, next } = await queue.list('a/')
    expect(messages.map((each) => [each.queue, text(each.body)])).toEqual([
      ['a/1', 'held'],
      ['a/2', 'later'],
      ['a/1', 'ready'],
    ])
    expect(messages[0]?.id).toBe(id)
    expect(next).toBeUndefined()
    expect((await queue.list('c/')).messages).toEqual([])
  })

  test('lists by pages, and what is put meanwhile comes on a later one', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    for (const body of ['1', '2', '3']) await queue.put('q', bytes(body))
    const first = await queue.list('', { limit: 2 })
    expect(first.messages.map(({ body }) => text(body))).toEqual(['1', '2'])
    await queue.put('q', bytes('4'))
    const { messages, next } = await queue.list('', { after: first.next ?? '', limit: 2 })
    expect(messages.map(({ body }) => text(body))).toEqual(['3', '4'])
    expect(next).toBeUndefined()
    await expectCode(queue.list('q', { limit: 0 }), 'invalid_argument')
    await expectCode(queue.list('q', { after: 'nonsense' }), 'invalid_argument')
  })
}
