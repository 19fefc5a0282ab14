import { expect, test } from 'vitest'
import type { Lease } from '../queue.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'

const LEASE_MS = 60_000

/** A queue that is removed. */
export function describeQueueDelete(makeEngine: MakeEngine): void {
  test('removes all that a queue has, also what is held or delayed, and nothing of another', async () => {
    await using subject = await makeEngine()
    let { queue } = subject.engine
    await queue.put('q', bytes('held'))
    const [late] = await queue.lease('q', { max: 1, leaseMs: LEASE_MS })
    await queue.put('q', bytes('ready'), { dedup: 'k' })
    await queue.put('q', bytes('delayed'), { delayMs: 100 })
    await queue.put('other', bytes('other'), { dedup: 'k' })
    await queue.delete('q')
    await queue.delete('q')
    queue = (await subject.crash()).queue
    subject.clock.advance(LEASE_MS)
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 0 })
    await expectCode(queue.ack(late as Lease), 'lease_lost')
    expect(await queue.depth('other')).toEqual({ ready: 1, delayed: 0, leased: 0 })
    expect(await queue.put('q', bytes('anew'), { dedup: 'k' })).toMatchObject({ duplicate: false })
    expect(await queue.put('other', bytes('b'), { dedup: 'k' })).toMatchObject({ duplicate: true })
    const [anew] = await queue.lease('q', { max: 1, leaseMs: LEASE_MS })
    expect(anew && text(anew.body)).toBe('anew')
  })

  test('wakes nobody, and a message that comes later is theirs who wait', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    const waiting = queue.lease('q', { max: 1, leaseMs: LEASE_MS, waitMs: LEASE_MS })
    await queue.delete('q')
    await queue.put('q', bytes('a'))
    const [a] = await waiting
    expect(a && text(a.body)).toBe('a')
  })
}
