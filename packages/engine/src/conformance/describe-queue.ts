import { describe, expect, test } from 'vitest'
import { MESSAGE_BYTES_MAX, QUEUE_DEDUP_MS } from '../limits.ts'
import type { Lease, Queue } from '../queue.ts'
import { describeQueueDelete } from './describe-queue-delete.ts'
import { describeQueueList } from './describe-queue-list.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'

const LEASE_MS = 60_000

/** What every queue must do. */
export function describeQueue(makeEngine: MakeEngine): void {
  describe('queue', () => {
    describeLeasing(makeEngine)
    describeHolding(makeEngine)
    describeWaiting(makeEngine)
    describeQueueDelete(makeEngine)
    describeQueueList(makeEngine)
  })
}

function describeLeasing(makeEngine: MakeEngine): void {
  test('leases by priority, then by age, also a message that came back', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('old'))
    await queue.put('q', bytes('low'), { priority: -5 })
    await queue.put('q', bytes('high'), { priority: 5 })
    await queue.put('q', bytes('new'))
    await queue.put('other', bytes('other'))
    const [high, old] = await queue.lease('q', { max: 2, leaseMs: LEASE_MS })
    expect([high, old].map((lease) => lease && text(lease.body))).toEqual(['high', 'old'])
    expect(high).toMatchObject({
      queue: 'q',
      priority: 5,
      deliveries: 1,
      expiresAtMs: subject.clock.now() + LEASE_MS,
    })
    await queue.nack(held(old))
    const rest = await queue.lease('q', { max: 10, leaseMs: LEASE_MS })
    expect(rest.map((lease) => text(lease.body))).toEqual(['old', 'new', 'low'])
    expect(await queue.lease('q', { max: 1, leaseMs: LEASE_MS })).toEqual([])
  })

  test('gives each lease a larger token and counts deliveries', async () => {
    await using subject = await makeEngine()
    let { queue } = subject.engine
    await queue.put('q', bytes('a'))
    const tokens: number[] = []
    for (let n = 1; n <= 5; n++) {
      const lease = await leaseOne(queue)
      expect(lease.deliveries).toBe(n)
      tokens.push(lease.token)
      await queue.nack(lease)
      if (n === 3) queue = (await subject.crash()).queue
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b))
    expect(new Set(tokens).size).toBe(5)
  })

  test('hands every message to one holder, with many at once', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await Promise.all(Array.from({ length: 300 }, (_, n) => queue.put('q', bytes(`${n}`))))
    const seen: string[] = []
    const holder = async (max: number) => {
      for (;;) {
        const leases = await queue.lease('q', { max, leaseMs: LEASE_MS })
        if (leases.length === 0) return
        for (const lease of leases) {
          seen.push(text(lease.body))
          await queue.ack(lease)
        }
      }
    }
    await Promise.all([1, 2, 3, 7, 11].map(holder))
    expect(seen).toHaveLength(300)
    expect(new Set(seen).size).toBe(300)
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 0 })
  })

  test('holds a delayed message back until its time', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'), { delayMs: 1000 })
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 1, leased: 0 })
    subject.clock.advance(999)
    expect(await queue.lease('q', { max: 1, leaseMs: LEASE_MS })).toEqual([])
    subject.clock.advance(1)
    expect(await queue.depth('q')).toEqual({ ready: 1, delayed: 0, leased: 0 })
    expect(text((await leaseOne(queue)).body)).toBe('a')
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 1 })
  })

  test('adds nothing for a key that stands', async () => {
    await using subject = await makeEngine()
    let { queue } = subject.engine
    const first = await queue.put('q', bytes('a'), { dedup: 'k' })
    expect(first.duplicate).toBe(false)
    expect(await queue.put('q', bytes('b'), { dedup: 'k' })).toEqual({
      id: first.id,
      duplicate: true,
    })
    expect((await queue.put('other', bytes('b'), { dedup: 'k' })).duplicate).toBe(false)
    subject.clock.advance(QUEUE_DEDUP_MS + 1)
    queue = (await subject.crash()).queue
    expect((await queue.put('q', bytes('b'), { dedup: 'k' })).duplicate).toBe(true)
    await queue.ack(await leaseOne(queue))
    const anew = await queue.put('q', bytes('c'), { dedup: 'k' })
    expect(anew.duplicate).toBe(false)
    expect(anew.id).not.toBe(first.id)
    await queue.ack(await leaseOne(queue))
    expect((await queue.put('q', bytes('d'), { dedup: 'k' })).duplicate).toBe(true)
    subject.clock.advance(QUEUE_DEDUP_MS)
    expect((await queue.put('q', bytes('d'), { dedup: 'k' })).duplicate).toBe(false)
  })

  test('refuses what is out of bounds', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await expectCode(queue.put('q', new Uint8Array(MESSAGE_BYTES_MAX + 1)), 'too_large')
    await expectCode(queue.put('', bytes('a')), 'invalid_argument')
    await expectCode(queue.put('q', bytes('a'), { priority: 0.5 }), 'invalid_argument')
    await expectCode(queue.put('q', bytes('a'), { delayMs: -1 }), 'invalid_argument')
    await expectCode(queue.put('q', bytes('a'), { dedup: '' }), 'invalid_argument')
    await expectCode(queue.lease('q', { max: 0, leaseMs: 1 }), 'invalid_argument')
    await expectCode(queue.lease('q', { max: 1, leaseMs: 0 }), 'invalid_argument')
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 0 })
  })

  test('bounds what one lease carries, and hands out the rest next', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    const large = new Uint8Array(MESSAGE_BYTES_MAX)
    for (let n = 0; n < 20; n++) await queue.put('q', large)
    const first = await queue.lease('q', { max: 20, leaseMs: LEASE_MS })
    expect(first.length).toBeGreaterThan(1)
    expect(first.length).toBeLessThan(20)
    const rest = await queue.lease('q', { max: 20, leaseMs: LEASE_MS })
    expect(first.length + rest.length).toBe(20)
    expect(rest.every((lease) => lease.body.byteLength === large.byteLength)).toBe(true)
  })
}

function describeHolding(makeEngine: MakeEngine): void {
  test('returns a message whose lease expired, and refuses its late holder', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'))
    const late = await leaseOne(queue)
    subject.clock.advance(LEASE_MS)
    expect(await queue.depth('q')).toEqual({ ready: 1, delayed: 0, leased: 0 })
    const next = await leaseOne(queue)
    expect(next.token).toBeGreaterThan(late.token)
    for (const call of [queue.ack(late), queue.nack(late), queue.extend(late, LEASE_MS)]) {
      await expectCode(call, 'lease_lost')
    }
    await queue.ack(next)
    await expectCode(queue.ack(next), 'lease_lost')
  })

  test('lets the latest holder finish after its time as long as nobody else has the message', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'))
    await queue.put('q', bytes('b'))
    const [a, b] = await queue.lease('q', { max: 2, leaseMs: LEASE_MS })
    subject.clock.advance(LEASE_MS * 2)
    await queue.ack(held(a))
    await queue.extend(held(b), LEASE_MS)
    expect(await queue.lease('q', { max: 1, leaseMs: LEASE_MS })).toEqual([])
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 1 })
  })

  test('extends from now on', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'))
    const lease = await leaseOne(queue)
    subject.clock.advance(LEASE_MS - 1)
    await queue.extend(lease, LEASE_MS)
    subject.clock.advance(LEASE_MS - 1)
    expect(await queue.lease('q', { max: 1, leaseMs: LEASE_MS })).toEqual([])
    subject.clock.advance(1)
    expect((await leaseOne(queue)).deliveries).toBe(2)
  })

  test('gives back at once or after a delay, and the giver holds nothing any more', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'))
    const first = await leaseOne(queue)
    await queue.nack(first)
    await expectCode(queue.ack(first), 'lease_lost')
    await queue.nack(await leaseOne(queue), { delayMs: 500 })
    expect(await queue.depth('q')).toEqual({ ready: 0, delayed: 1, leased: 0 })
    subject.clock.advance(500)
    expect((await leaseOne(queue)).deliveries).toBe(3)
  })

  test('keeps puts, leases and acks over a crash', async () => {
    await using subject = await makeEngine()
    let { queue } = subject.engine
    for (const name of ['a', 'b', 'c']) await queue.put('q', bytes(name))
    const [a, b] = await queue.lease('q', { max: 2, leaseMs: LEASE_MS })
    await queue.ack(held(a))
    queue = (await subject.crash()).queue
    expect(await queue.depth('q')).toEqual({ ready: 1, delayed: 0, leased: 1 })
    await queue.ack(held(b))
    const c = await leaseOne(queue)
    expect(text(c.body)).toBe('c')
    subject.clock.advance(LEASE_MS)
    queue = (await subject.crash()).queue
    expect(text((await leaseOne(queue)).body)).toBe('c')
  })
}

function describeWaiting(makeEngine: MakeEngine): void {
  test('serves those who wait in the order of their calls', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    const waiting = Array.from({ length: 300 }, () =>
      queue.lease('q', { max: 1, leaseMs: LEASE_MS, waitMs: 10_000 }),
    )
    for (let n = 0; n < 300; n++) void queue.put('q', bytes(`${n}`))
    const served = await Promise.all(waiting)
    expect(served.map(([lease]) => Number(text(held(lease).body)))).toEqual(
      Array.from({ length: 300 }, (_, n) => n),
    )
  })

  test('wakes for a delayed message, a message given back, and an expired lease', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'), { delayMs: 100 })
    const first = wait(queue)
    // The line has asked and set its timer once it answers a second question.
    await queue.depth('q')
    subject.clock.advance(100)
    const lease = held((await first)[0])
    const second = wait(queue)
    await queue.depth('q')
    await queue.nack(lease)
    expect((await second)[0]?.deliveries).toBe(2)
    const third = wait(queue)
    await queue.depth('q')
    subject.clock.advance(LEASE_MS)
    const again = held((await third)[0])
    expect(again.deliveries).toBe(3)
    // A lease that is made shorter expires earlier for those who wait.
    const fourth = wait(queue)
    await queue.depth('q')
    await queue.extend(again, 10)
    subject.clock.advance(10)
    expect((await fourth)[0]?.deliveries).toBe(4)
  })

  test('ends a wait at its time, by its signal, and when the engine closes', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    const timed = queue.lease('q', { max: 1, leaseMs: LEASE_MS, waitMs: 1000 })
    await queue.depth('q')
    subject.clock.advance(1000)
    expect(await timed).toEqual([])
    const controller = new AbortController()
    const aborted = queue.lease('q', {
      max: 1,
      leaseMs: LEASE_MS,
      waitMs: 1000,
      signal: controller.signal,
    })
    const reason = new Error('gone')
    controller.abort(reason)
    await expect(aborted).rejects.toBe(reason)
    await queue.put('q', bytes('a'))
    expect(text((await leaseOne(queue)).body)).toBe('a')
    const closed = expectCode(wait(queue), 'closed')
    await subject.reopen()
    await closed
    expect(subject.clock.pending).toBe(0)
  })

  test('gives a message back whose taker left while it was on its way', async () => {
    await using subject = await makeEngine()
    const { queue } = subject.engine
    await queue.put('q', bytes('a'))
    const controller = new AbortController()
    const leaving = queue.lease('q', {
      max: 1,
      leaseMs: LEASE_MS,
      waitMs: 1000,
      signal: controller.signal,
    })
    controller.abort()
    await expect(leaving).rejects.toMatchObject({ name: 'AbortError' })
    const [lease] = await wait(queue)
    expect(text(held(lease).body)).toBe('a')
    // Nobody had it before.
    expect(held(lease).deliveries).toBe(1)
  })
}

function wait(queue: Queue): Promise<Lease[]> {
  return queue.lease('q', { max: 1, leaseMs: LEASE_MS, waitMs: 60 * 60_000 })
}

async function leaseOne(queue: Queue): Promise<Lease> {
  return held((await queue.lease('q', { max: 1, leaseMs: LEASE_MS }))[0])
}

function held(lease: Lease | undefined): Lease {
  if (lease === undefined) throw new Error('no message was leased')
  return lease
}
