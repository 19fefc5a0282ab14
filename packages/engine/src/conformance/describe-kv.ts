import { describe, expect, test } from 'vitest'
import type { Kv, KvEvent } from '../kv.ts'
import { PAGE_BYTES_MAX, SWEEP_ROWS_MAX, VALUE_BYTES_MAX } from '../limits.ts'
import { bytes, expectCode, type MakeEngine, take, text } from './engine-under-test.ts'

/** What every kv must do. */
export function describeKv(makeEngine: MakeEngine): void {
  describe('kv', () => {
    describeValues(makeEngine)
    describeTimeToLive(makeEngine)
    describeWatching(makeEngine)
  })
}

function describeValues(makeEngine: MakeEngine): void {
  test('puts, gets and deletes, also over a crash', async () => {
    await using subject = await makeEngine()
    let { kv } = subject.engine
    expect(await kv.get('a')).toBeUndefined()
    const { revision } = await kv.put('a', bytes('1'))
    await kv.put('b', bytes('2'))
    expect(await kv.delete('b')).toBe(true)
    kv = (await subject.crash()).kv
    expect(await kv.get('a')).toEqual({ key: 'a', value: bytes('1'), revision })
    expect(await kv.get('b')).toBeUndefined()
    expect(await kv.delete('b')).toBe(false)
  })

  test('compares before it sets', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    const first = await kv.put('a', bytes('1'), { expect: 'absent' })
    expect(await expectCode(kv.put('a', bytes('x'), { expect: 'absent' }), 'kv_conflict')).toEqual({
      revision: first.revision,
    })
    const second = await kv.put('a', bytes('2'), { expect: first.revision })
    expect(second.revision > first.revision).toBe(true)
    await expectCode(kv.put('a', bytes('x'), { expect: first.revision }), 'kv_conflict')
    await expectCode(kv.delete('a', { expect: first.revision }), 'kv_conflict')
    expect(text((await kv.get('a'))?.value ?? bytes(''))).toBe('2')
    await kv.delete('a', { expect: second.revision })
    expect(await expectCode(kv.delete('a', { expect: second.revision }), 'kv_conflict')).toEqual({
      revision: null,
    })
  })

  test('never gives a revision twice, also over deletion and crash', async () => {
    await using subject = await makeEngine()
    let { kv } = subject.engine
    const revisions: string[] = []
    for (let n = 0; n < 6; n++) {
      revisions.push((await kv.put('a', bytes('x'), { expect: 'absent' })).revision)
      await kv.delete('a')
      if (n % 2 === 1) kv = (await subject.crash()).kv
    }
    expect(new Set(revisions).size).toBe(6)
    expect(revisions.toSorted()).toEqual(revisions)
  })

  test('lets one of many writers win each revision', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    await kv.put('counter', bytes('0'))
    const add = async () => {
      for (let done = 0; done < 10; ) {
        const entry = await kv.get('counter')
        const next = bytes(`${Number(text(entry?.value ?? bytes(''))) + 1}`)
        const won = await kv.put('counter', next, { expect: entry?.revision ?? 'absent' }).then(
          () => true,
          async (error) => {
            await expectCode(Promise.reject(error), 'kv_conflict')
            return false
          },
        )
        if (won) done += 1
      }
    }
    await Promise.all(Array.from({ length: 8 }, add))
    expect(text((await kv.get('counter'))?.value ?? bytes(''))).toBe('80')
  })

  test('lists by prefix, in order, page by page', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    for (const key of ['node/b', 'node/a', 'node0', 'nod', 'node/c']) await kv.put(key, bytes(key))
    const first = await kv.list('node/', { limit: 2 })
    expect(first.entries.map(({ key, value }) => [key, text(value)])).toEqual([
      ['node/a', 'node/a'],
      ['node/b', 'node/b'],
    ])
    const second = await kv.list('node/', { limit: 2, after: first.next ?? '' })
    expect(second.entries.map(({ key }) => key)).toEqual(['node/c'])
    expect(second.next).toBeUndefined()
    expect((await kv.list('')).entries).toHaveLength(5)
    expect((await kv.list('node/', { limit: 3 })).next).toBeUndefined()
    const large = new Uint8Array(VALUE_BYTES_MAX)
    const count = PAGE_BYTES_MAX / VALUE_BYTES_MAX + 3
    for (let n = 0; n < count; n++) await kv.put(`large/${n}`, large)
    const page = await kv.list('large/')
    expect(page.entries.length).toBeLessThan(count)
    expect(page.next).toBe(page.entries.at(-1)?.key)
  })

  test('refuses what is out of bounds', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    await expectCode(kv.put('a', new Uint8Array(VALUE_BYTES_MAX + 1)), 'too_large')
    await expectCode(kv.put('a b', bytes('')), 'invalid_argument')
    await expectCode(kv.put('a', bytes(''), { ttlMs: 0 }), 'invalid_argument')
    await expectCode(kv.put('a', bytes(''), { expect: '' }), 'invalid_argument')
    await expectCode(kv.list('a%b'), 'invalid_argument')
    expect((await kv.list('')).entries).toEqual([])
    await kv.put('empty', bytes(''))
    expect((await kv.get('empty'))?.value).toEqual(bytes(''))
  })
}

function describeTimeToLive(makeEngine: MakeEngine): void {
  test('forgets an entry at its time, and not before', async () => {
    await using subject = await makeEngine()
    let { kv } = subject.engine
    const { clock } = subject
    const { revision } = await kv.put('a', bytes('1'), { ttlMs: 1000 })
    expect((await kv.get('a'))?.expiresAtMs).toBe(clock.now() + 1000)
    clock.advance(999)
    expect(await kv.get('a')).toBeDefined()
    kv = (await subject.crash()).kv
    expect(await kv.get('a')).toBeDefined()
    clock.advance(1)
    expect(await kv.get('a')).toBeUndefined()
    expect((await kv.list('')).entries).toEqual([])
    expect(await kv.delete('a')).toBe(false)
    await expectCode(kv.put('a', bytes('2'), { expect: revision }), 'kv_conflict')
    await kv.put('a', bytes('2'), { expect: 'absent' })
    clock.advance(1_000_000)
    expect(text((await kv.get('a'))?.value ?? bytes(''))).toBe('2')
  })

  test('renews the time with each put, and drops it with one that has none', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    await kv.put('a', bytes('1'), { ttlMs: 1000 })
    await kv.put('b', bytes('1'), { ttlMs: 1000 })
    subject.clock.advance(600)
    await kv.put('a', bytes('2'), { ttlMs: 1000 })
    await kv.put('b', bytes('2'))
    subject.clock.advance(999)
    expect(await kv.get('a')).toBeDefined()
    subject.clock.advance(1)
    expect(await kv.get('a')).toBeUndefined()
    expect(await kv.get('b')).toBeDefined()
  })

  test('forgets what ran out while nobody was there', async () => {
    await using subject = await makeEngine()
    let { kv } = subject.engine
    await kv.put('a', bytes('1'), { ttlMs: 1000 })
    await kv.put('b', bytes('1'), { ttlMs: 5000 })
    const reopening = subject.crash()
    subject.clock.advance(2000)
    kv = (await reopening).kv
    expect((await kv.list('')).entries.map(({ key }) => key)).toEqual(['b'])
  })
}

function describeWatching(makeEngine: MakeEngine): void {
  test('shows what is there, then each change in order', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    await kv.put('n/a', bytes('1'))
    await kv.put('other', bytes('1'))
    const watch = kv.watch('n/')[Symbol.asyncIterator]()
    expect((await take(watch, 2)).map(show)).toEqual(['put n/a=1', 'current'])
    await kv.put('n/b', bytes('2'))
    await kv.put('other', bytes('2'))
    await kv.delete('n/a')
    expect((await take(watch, 2)).map(show)).toEqual(['put n/b=2', 'delete n/a'])
    const next = watch.next()
    await kv.put('n/a', bytes('3'))
    expect(show((await next).value)).toBe('put n/a=3')
  })

  test('tells when an entry expires, without being asked', async () => {
    await using subject = await makeEngine()
    let { kv } = subject.engine
    await kv.put('n/a', bytes('1'), { ttlMs: 1000 })
    await kv.put('n/b', bytes('1'), { ttlMs: 2000 })
    const watch = kv.watch('n/')[Symbol.asyncIterator]()
    const seen = await take(watch, 3)
    subject.clock.advance(1000)
    const [expired] = await take(watch, 1)
    expect(expired).toMatchObject({ type: 'delete', key: 'n/a', expired: true })
    const put = seen.find((event) => event.type === 'put' && event.entry.key === 'n/a')
    expect(
      put?.type === 'put' && expired?.type === 'delete' && expired.revision > put.entry.revision,
    ).toBe(true)
    kv = (await subject.crash()).kv
    const again = kv.watch('n/')[Symbol.asyncIterator]()
    await take(again, 2)
    subject.clock.advance(1000)
    expect((await take(again, 1)).map(show)).toEqual(['delete n/b'])
  })

  test('sweeps many that expire at one instant', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    const count = SWEEP_ROWS_MAX + 50
    await Promise.all(
      Array.from({ length: count }, (_, n) => kv.put(`n/${n}`, bytes(''), { ttlMs: 10 })),
    )
    const watch = kv.watch('n/')[Symbol.asyncIterator]()
    await take(watch, count + 1)
    subject.clock.advance(10)
    const events = await take(watch, count)
    expect(events.every((event) => event.type === 'delete')).toBe(true)
  })

  test('skips what lies between for a slow watcher, never the last state', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    const watch = kv.watch('n/')[Symbol.asyncIterator]()
    await take(watch, 1)
    for (let n = 0; n <= 100; n++) await kv.put('n/a', bytes(`${n}`))
    await kv.put('n/b', bytes('1'))
    await kv.delete('n/b')
    const last = new Map<string, string>()
    let events = 0
    while (last.get('n/b') !== 'delete n/b') {
      const [event] = await take(watch, 1)
      events += 1
      if (event?.type === 'put') last.set(event.entry.key, show(event))
      if (event?.type === 'delete') last.set(event.key, show(event))
    }
    expect(last.get('n/a')).toBe('put n/a=100')
    expect(events).toBeLessThan(10)
  })

  test('misses no change that falls into the first listing', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    const count = 3000
    await Promise.all(Array.from({ length: count }, (_, n) => kv.put(key(n), bytes('old'))))
    const states = new Map<string, string>()
    const watch = kv.watch('n/')[Symbol.asyncIterator]()
    await take(watch, 1)
    states.set(key(0), 'old')
    const changes = Promise.all([
      ...Array.from({ length: count }, (_, n) => kv.put(key(n), bytes('new'))),
      kv.delete(key(count - 1)),
    ])
    const revisions = new Map<string, string>()
    for (
      let done = false;
      !done || states.size < count - 1 || [...states.values()].includes('old');
    ) {
      const [event] = await take(watch, 1)
      if (event?.type === 'current') done = true
      else if (event?.type === 'put') {
        expect((revisions.get(event.entry.key) ?? '') < event.entry.revision).toBe(true)
        revisions.set(event.entry.key, event.entry.revision)
        states.set(event.entry.key, text(event.entry.value))
      } else if (event?.type === 'delete') states.delete(event.key)
    }
    await changes
    const listed = await all(kv, 'n/')
    expect(listed).toHaveLength(count - 1)
  })

  test('ends by its signal and when the engine closes', async () => {
    await using subject = await makeEngine()
    const { kv } = subject.engine
    const controller = new AbortController()
    const watch = kv.watch('', { signal: controller.signal })[Symbol.asyncIterator]()
    await watch.next()
    const next = watch.next()
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(next).rejects.toBe(reason)
    const other = kv.watch('')[Symbol.asyncIterator]()
    await other.next()
    const closed = expectCode(other.next(), 'closed')
    await subject.reopen()
    await closed
  })
}

function key(n: number): string {
  return `n/${String(n).padStart(5, '0')}`
}

async function all(kv: Kv, prefix: string): Promise<string[]> {
  const keys: string[] = []
  let after: string | undefined
  do {
    const page = await kv.list(prefix, after === undefined ? {} : { after })
    keys.push(...page.entries.map((entry) => entry.key))
    after = page.next
  } while (after !== undefined)
  return keys
}

function show(event: KvEvent): string {
  if (event.type === 'put') return `put ${event.entry.key}=${text(event.entry.value)}`
  return event.type === 'delete' ? `delete ${event.key}` : 'current'
}
