import { expect, test } from 'vitest'
import { APPEND_BYTES_MAX, PAGE_BYTES_MAX } from '../limits.ts'
import { bytes, expectCode, type MakeEngine, take, text, texts } from './engine-under-test.ts'

export function describeLogRead(makeEngine: MakeEngine): void {
  test('reads page by page; a page ends at its limit or its size', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    for (let n = 0; n < 25; n++) await log.append('s', [bytes(`${n}`)])
    const pages: string[][] = []
    let after: string | undefined
    for (;;) {
      const page = await log.read('s', { limit: 10, ...(after !== undefined && { after }) })
      pages.push(texts(page))
      if (page.length === 0) break
      after = page.at(-1)?.position
    }
    expect(pages.map((page) => page.length)).toEqual([10, 10, 5, 0])
    expect(pages.flat()).toEqual(Array.from({ length: 25 }, (_, n) => `${n}`))
    const large = new Uint8Array(APPEND_BYTES_MAX)
    const count = PAGE_BYTES_MAX / APPEND_BYTES_MAX + 3
    for (let n = 0; n < count; n++) await log.append('large', [large])
    const first = await log.read('large')
    expect(first.length).toBeGreaterThan(0)
    expect(first.length).toBeLessThan(count)
  })

  test('reads an unknown stream as empty, but refuses a cursor that it never gave', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    expect(await log.read('none')).toEqual([])
    expect(await log.head('none')).toBeUndefined()
    const { position } = await log.append('s', [bytes('a'), bytes('b')])
    await expectCode(log.read('none', { after: position }), 'not_found')
    await log.append('short', [bytes('a')])
    await expectCode(log.read('short', { after: position }), 'invalid_argument')
    await expectCode(log.read('s', { after: 'elsewhere' }), 'invalid_argument')
    expect(await log.read('s', { after: position })).toEqual([])
  })

  test('finds records by their keys, in the order of these', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    expect(await log.find('none', ['ka'])).toEqual([undefined])
    await log.append('s', ['a', 'b', 'c'].map(bytes), { dedup: ['ka', 'kb', 'kc'] })
    await log.append('other', [bytes('d')], { dedup: ['kd'] })
    log = (await subject.crash()).log
    const found = await log.find('s', ['kc', 'kd', 'ka'])
    expect(found.map((record) => record && text(record.bytes))).toEqual(['c', undefined, 'a'])
    const all = await log.read('s')
    expect([found[0], found[2]]).toEqual([all[2], all[0]])
    await log.trim('s', all[0]?.position ?? '')
    expect(await log.find('s', ['ka', 'kb'])).toEqual([undefined, all[1]])
    await expectCode(log.find('s', []), 'invalid_argument')
  })

  test('a page of what was found ends at its size', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const count = PAGE_BYTES_MAX / APPEND_BYTES_MAX + 3
    const keys = Array.from({ length: count }, (_, n) => `k${n}`)
    const large = new Uint8Array(APPEND_BYTES_MAX)
    for (const key of keys) await log.append('s', [large], { dedup: [key] })
    const first = await log.find('s', keys)
    expect(first.length).toBe(count - 3)
    expect(await log.find('s', keys.slice(first.length))).toHaveLength(3)
  })
}

export function describeLogTail(makeEngine: MakeEngine): void {
  test('follows a stream from before its first record, also over a slow reader', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const tail = log.tail('s')[Symbol.asyncIterator]()
    const first = tail.next()
    await log.append('s', [bytes('0')])
    expect(text((await first).value.bytes)).toBe('0')
    // The reader does not move while the writer goes on.
    for (let n = 1; n < 3000; n += 3)
      await log.append(
        's',
        [n, n + 1, n + 2].map((m) => bytes(`${m}`)),
      )
    const rest = await take(tail, 3000)
    expect(rest.map((record) => Number(text(record.bytes)))).toEqual(
      Array.from({ length: 3000 }, (_, n) => n + 1),
    )
    const next = tail.next()
    await log.append('s', [bytes('last')])
    expect(text((await next).value.bytes)).toBe('last')
  })

  test('starts after its cursor and ends by its signal or by leaving the loop', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    await log.append('s', ['a', 'b', 'c'].map(bytes))
    const [first] = await log.read('s')
    const seen: string[] = []
    for await (const record of log.tail('s', { after: first?.position ?? '' })) {
      seen.push(text(record.bytes))
      if (seen.length === 2) break
    }
    expect(seen).toEqual(['b', 'c'])
    const controller = new AbortController()
    const head = await log.head('s')
    const waiting = log.tail('s', { after: head ?? '', signal: controller.signal })
    const next = waiting[Symbol.asyncIterator]().next()
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(next).rejects.toBe(reason)
  })

  test('ends with an error when the stream is deleted or the engine closes', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    await log.append('s', [bytes('a')])
    const tail = log.tail('s')[Symbol.asyncIterator]()
    await tail.next()
    const deleted = expectCode(tail.next(), 'not_found')
    await log.delete('s')
    await log.append('s', [bytes('of another life')])
    await deleted
    const waiting = log.tail('t')[Symbol.asyncIterator]().next()
    const closed = expectCode(waiting, 'closed')
    await subject.reopen()
    await closed
    await expectCode(log.append('s', [bytes('x')]), 'closed')
  })

  test('wakes a thousand tails with one append', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const nexts = Array.from({ length: 1000 }, () => log.tail('s')[Symbol.asyncIterator]().next())
    await log.append('s', [bytes('a')])
    expect(new Set((await Promise.all(nexts)).map((next) => text(next.value.bytes)))).toEqual(
      new Set(['a']),
    )
  })
}
