import { describe, expect, test } from 'vitest'
import { BUS_BYTES_MAX, SUBSCRIBER_MESSAGES_MAX } from '../limits.ts'
import { bytes, expectCode, type MakeEngine, take, text } from './engine-under-test.ts'

/** What every bus must do. */
export function describeBus(makeEngine: MakeEngine): void {
  describe('bus', () => {
    describeRequests(makeEngine)
    describeSubscriptions(makeEngine)
    describeFaults(makeEngine)
  })
}

function describeRequests(makeEngine: MakeEngine): void {
  test('brings a request to who serves it, and the reply back', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    using _service = bus.serve('node.a', (payload, context) =>
      bytes(`${context.subject} got ${text(payload)}`),
    )
    expect(text(await bus.request('node.a', bytes('hello')))).toBe('node.a got hello')
    await expectCode(bus.request('node.b', bytes('hello')), 'no_responder')
  })

  test('asks those who serve a subject in turn, until they stop', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const a = bus.serve('s', async () => bytes('a'))
    const b = bus.serve('s', async () => bytes('b'))
    const ask = async () => text(await bus.request('s', bytes('')))
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual(['a', 'b', 'a', 'b'])
    a[Symbol.dispose]()
    a[Symbol.dispose]()
    expect([await ask(), await ask()]).toEqual(['b', 'b'])
    b[Symbol.dispose]()
    await expectCode(ask(), 'no_responder')
  })

  test('ends a request at its deadline, and tells the handler', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const started = Promise.withResolvers<AbortSignal>()
    using _service = bus.serve('s', (_payload, { signal }) => {
      started.resolve(signal)
      return new Promise(() => {})
    })
    const request = expectCode(bus.request('s', bytes(''), { timeoutMs: 500 }), 'deadline_exceeded')
    const signal = await started.promise
    subject.clock.advance(499)
    expect(signal.aborted).toBe(false)
    subject.clock.advance(1)
    await request
    expect(signal.aborted).toBe(true)
    expect(subject.clock.pending).toBe(0)
  })

  test('ends a request by its signal, when its handler throws, and when the engine closes', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const failing = bus.serve('fails', () => {
      throw new Error('no such sandbox')
    })
    await expect(bus.request('fails', bytes(''))).rejects.toThrow('fails: no such sandbox')
    await expectCode(bus.request('fails', bytes('')), 'handler_failed')
    failing[Symbol.dispose]()
    using _service = bus.serve('hangs', () => new Promise(() => {}))
    const controller = new AbortController()
    const reason = new Error('enough')
    const aborted = bus.request('hangs', bytes(''), { signal: controller.signal })
    controller.abort(reason)
    await expect(aborted).rejects.toBe(reason)
    const closed = expectCode(bus.request('hangs', bytes('')), 'closed')
    await subject.reopen()
    await closed
    await expectCode(bus.request('hangs', bytes('')), 'closed')
  })

  test('refuses what is out of bounds', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    using _service = bus.serve('s', () => new Uint8Array(BUS_BYTES_MAX + 1))
    await expectCode(bus.request('s', new Uint8Array(BUS_BYTES_MAX + 1)), 'too_large')
    await expectCode(bus.request('s', bytes('')), 'too_large')
    for (const name of ['', 'a.', 'a..b', 'a.*', 'a b']) {
      await expectCode(bus.request(name, bytes('')), 'invalid_argument')
    }
    expect(() => bus.subscribe('a.>.b')).toThrow('pattern')
  })
}

function describeSubscriptions(makeEngine: MakeEngine): void {
  test('gives a message to everybody whose pattern fits', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const patterns = ['a.b.c', 'a.*.c', 'a.>', '>', 'a.b', 'a.b.c.d', '*.c']
    const fits = patterns.slice(0, 4)
    const subscriptions = patterns.map((pattern) => bus.subscribe(pattern))
    bus.publish('a.b.c', bytes('1'))
    bus.publish('end', bytes(''))
    for (const pattern of fits) {
      const [message] = await take(subscriptions[patterns.indexOf(pattern)] ?? failed(), 1)
      expect([message?.subject, text(message?.payload ?? bytes(''))]).toEqual(['a.b.c', '1'])
    }
    for (const subscription of subscriptions) await subscription.return?.()
    expect(await subscriptions[4]?.next()).toEqual({ done: true, value: undefined })
  })

  test('keeps the order of one publisher, from the subscription on', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    bus.publish('s', bytes('before'))
    const subscription = bus.subscribe('s')
    for (let n = 0; n < 100; n++) bus.publish('s', bytes(`${n}`))
    const seen = (await take(subscription, 100)).map((message) => text(message.payload))
    expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => `${n}`))
  })

  test('cuts off who is too slow, and nobody else', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const slow = bus.subscribe('s')
    const quick = bus.subscribe('s')
    for (let n = 0; n <= SUBSCRIBER_MESSAGES_MAX; n++) {
      bus.publish('s', bytes(`${n}`))
      await quick.next()
    }
    await expectCode(slow.next(), 'slow_consumer')
    expect((await slow.next()).done).toBe(true)
    bus.publish('s', bytes('more'))
    expect(text((await quick.next()).value.payload)).toBe('more')
  })

  test('ends by its signal, by leaving the loop, and when the engine closes', async () => {
    await using subject = await makeEngine()
    const { bus } = subject.engine
    const controller = new AbortController()
    const next = bus.subscribe('s', { signal: controller.signal }).next()
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(next).rejects.toBe(reason)
    const left = bus.subscribe('s')
    bus.publish('s', bytes('1'))
    for await (const message of left) {
      expect(text(message.payload)).toBe('1')
      break
    }
    expect((await left.next()).done).toBe(true)
    const closed = expectCode(bus.subscribe('s').next(), 'closed')
    await subject.reopen()
    await closed
    expect(() => bus.publish('s', bytes(''))).toThrow('closed')
  })
}

function describeFaults(makeEngine: MakeEngine): void {
  /** What handler and subscriber see of 30 messages each under this seed. */
  async function observe(seed: number) {
    await using subject = await makeEngine({
      busFaults: { seed, delayMsMax: 50, doubleShare: 0.3 },
    })
    const { bus } = subject.engine
    const handled: string[] = []
    using _service = bus.serve('s', (payload) => {
      handled.push(text(payload))
      return payload
    })
    const heard: string[] = []
    const subscription = bus.subscribe('p')
    const sent = bytes('first')
    bus.publish('p', sent)
    sent.fill(0)
    const replies = Array.from({ length: 30 }, (_, n) => bus.request('s', bytes(`${n}`)))
    for (let n = 0; n < 30; n++) bus.publish('p', bytes(`${n}`))
    subject.clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
    subject.clock.advance(50)
    const answers = (await Promise.all(replies)).map(text)
    bus.publish('p', bytes('end'))
    subject.clock.advance(50)
    for await (const message of subscription) {
      if (text(message.payload) === 'end') break
      heard.push(text(message.payload))
    }
    return { handled, heard, answers }
  }

  test('delays, doubles and copies messages by seed; each requester still gets its own reply', async () => {
    const numbers = Array.from({ length: 30 }, (_, n) => `${n}`)
    const first = await observe(7)
    expect(first.answers).toEqual(numbers)
    expect(new Set(first.handled)).toEqual(new Set(numbers))
    expect(first.handled.length).toBeGreaterThan(30)
    expect(first.handled).not.toEqual(first.handled.toSorted((a, b) => Number(a) - Number(b)))
    expect(new Set(first.heard)).toEqual(new Set(['first', ...numbers]))
    expect(first.heard.length).toBeGreaterThan(31)
    expect(await observe(7)).toEqual(first)
    expect(await observe(8)).not.toEqual(first)
  })
}

function failed(): never {
  throw new Error('no such subscription')
}
