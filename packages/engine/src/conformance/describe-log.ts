import { describe, expect, test } from 'vitest'
import { APPEND_BYTES_MAX, PAGE_BYTES_MAX, SWEEP_ROWS_MAX } from '../limits.ts'
import type { Log, LogRecord } from '../log.ts'
import { bytes, expectCode, type MakeEngine, take, text, until } from './engine-under-test.ts'

export function describeLog(makeEngine: MakeEngine): void {
  describe('log', () => {
    describeAppending(makeEngine)
    describeReading(makeEngine)
    describeTailing(makeEngine)
    describeKeeping(makeEngine)
  })
}

function describeAppending(makeEngine: MakeEngine): void {
  test('gives records back in order, with positions that order as text', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    for (let n = 0; n < 30; n++) await log.append('run/a', [bytes(`${n}`)])
    const records = await log.read('run/a')
    expect(texts(records)).toEqual(Array.from({ length: 30 }, (_, n) => `${n}`))
    const positions = records.map(({ position }) => position)
    expect(positions.toSorted()).toEqual(positions)
    expect(await log.head('run/a')).toBe(positions.at(-1))
  })

  test('keeps appends of one caller in order without awaiting, and each batch side by side', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const writers = Array.from({ length: 16 }, async (_, writer) => {
      const batches = Array.from({ length: 20 }, (_, n) =>
        log.append(
          's',
          [0, 1, 2].map((part) => bytes(`${writer}.${n}.${part}`)),
        ),
      )
      await Promise.all(batches)
    })
    await Promise.all(writers)
    const found = texts(await log.read('s'))
    expect(found).toHaveLength(16 * 20 * 3)
    for (let at = 0; at < found.length; at += 3) {
      const stem = found[at]?.replace(/\.0$/, '')
      expect(found.slice(at, at + 3)).toEqual([`${stem}.0`, `${stem}.1`, `${stem}.2`])
    }
    const ofFirst = found
      .filter((name) => name.startsWith('0.'))
      .map((name) => Number(name.split('.')[1]))
    expect(ofFirst).toEqual(ofFirst.toSorted((a, b) => a - b))
  })

  test('refuses an append whose expected position is not the head', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    await expectCode(log.append('s', [bytes('x')], { expect: '0000000000000007' }), 'log_conflict')
    const first = await log.append('s', [bytes('a'), bytes('b')], { expect: 'start' })
    expect(
      await expectCode(log.append('s', [bytes('x')], { expect: 'start' }), 'log_conflict'),
    ).toEqual({
      head: first.position,
    })
    const second = await log.append('s', [bytes('c')], { expect: first.position })
    await expectCode(log.append('s', [bytes('x')], { expect: first.position }), 'log_conflict')
    expect(await log.head('s')).toBe(second.position)
    expect(texts(await log.read('s'))).toEqual(['a', 'b', 'c'])
  })

  test('lets one of two coordinators win each round', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    let wins = 0
    let losses = 0
    const coordinate = async (name: string) => {
      for (let round = 0; round < 25; round++) {
        const expected = (await log.head('s')) ?? 'start'
        await log.append('s', [bytes(name)], { expect: expected }).then(
          () => wins++,
          async (error) => {
            await expectCode(Promise.reject(error), 'log_conflict')
            losses++
          },
        )
      }
    }
    await Promise.all([coordinate('a'), coordinate('b'), coordinate('c')])
    expect(wins + losses).toBe(75)
    expect(await log.read('s')).toHaveLength(wins)
    expect(losses).toBeGreaterThan(0)
  })

  test('skips and reports a record whose key stands already', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    const first = await log.append('r', [bytes('a'), bytes('b')], { dedup: ['ka', 'kb'] })
    expect(first.duplicates).toEqual([])
    const [recordA, recordB] = await log.read('r')
    const again = await log.append('r', ['b2', 'c', 'c2'].map(bytes), { dedup: ['kb', 'kc', 'kc'] })
    expect(again.duplicates).toEqual([
      { index: 0, position: recordB?.position },
      { index: 2, position: again.position },
    ])
    log = (await subject.crash()).log
    const only = await log.append('r', [bytes('a2')], { dedup: ['ka'], expect: again.position })
    expect(only).toEqual({
      position: again.position,
      duplicates: [{ index: 0, position: recordA?.position }],
    })
    await expectCode(
      log.append('r', [bytes('a')], { dedup: ['ka'], expect: 'start' }),
      'log_conflict',
    )
    expect((await log.append('other', [bytes('a')], { dedup: ['ka'] })).duplicates).toEqual([])
    expect(texts(await log.read('r'))).toEqual(['a', 'b', 'c'])
  })

  test('refuses what is out of bounds, and stores nothing of it', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const half = new Uint8Array(APPEND_BYTES_MAX / 2)
    await expectCode(log.append('s', [half, half, bytes('x')]), 'too_large')
    for (const name of ['', '-a', 'a b', 'a\n', 'ä', 'x'.repeat(257)]) {
      await expectCode(log.append(name, [bytes('x')]), 'invalid_argument')
    }
    await expectCode(log.append('s', []), 'invalid_argument')
    await expectCode(log.append('s', [bytes('x')], { expect: '7' }), 'invalid_argument')
    await expectCode(log.append('s', [bytes('x')], { dedup: [] }), 'invalid_argument')
    await expectCode(log.append('s', [bytes('x')], { dedup: ['\ud800'] }), 'invalid_argument')
    await expectCode(log.read('s', { limit: 0 }), 'invalid_argument')
    expect(await log.head('s')).toBeUndefined()
    await log.append('s', [half, half])
    expect((await log.read('s')).map((record) => record.bytes.byteLength)).toEqual([
      half.byteLength,
      half.byteLength,
    ])
  })

  test('stores nothing for a call that was aborted before it began', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    const reason = new Error('not any more')
    await expect(log.append('s', [bytes('x')], { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    )
    const controller = new AbortController()
    const call = log.append('s', [bytes('x')], { signal: controller.signal })
    controller.abort(reason)
    await expect(call).rejects.toBe(reason)
    expect(await log.read('s')).toEqual([])
  })
}

function describeReading(makeEngine: MakeEngine): void {
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
}

function describeTailing(makeEngine: MakeEngine): void {
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

function describeKeeping(makeEngine: MakeEngine): void {
  test('keeps the latest checkpoint, and refuses an older one', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    const first = await log.append('s', [bytes('a')])
    const second = await log.append('s', [bytes('b')])
    expect(await log.latestCheckpoint('s')).toBeUndefined()
    await log.checkpoint('s', first.position, bytes('state a'))
    await log.checkpoint('s', second.position, bytes('state b'))
    await log.checkpoint('s', second.position, bytes('state b again'))
    await expectCode(log.checkpoint('s', first.position, bytes('old')), 'log_conflict')
    await expectCode(log.checkpoint('s', '0000000000000099', bytes('x')), 'invalid_argument')
    await expectCode(log.checkpoint('none', first.position, bytes('x')), 'invalid_argument')
    log = (await subject.crash()).log
    const found = await log.latestCheckpoint('s')
    expect(found?.position).toBe(second.position)
    expect(text(found?.state ?? bytes(''))).toBe('state b again')
  })

  test('trims up to a position, in one go or many, and refuses a cursor that lies before it', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    const count = 2 * SWEEP_ROWS_MAX + 10
    await fill(log, 's', count)
    await log.append('s', [bytes('kept')], { dedup: ['kept'] })
    const positions = (await readAll(log, 's')).map((record) => record.position)
    const [first = '', second = ''] = positions
    await log.append('s', [bytes('dropped')], { dedup: ['dropped'] })
    await log.trim('s', first)
    await log.trim('s', first)
    expect(text((await log.read('s', { after: first }))[0]?.bytes ?? bytes(''))).toBe('1')
    const upTo = positions[count - 1] ?? ''
    await log.trim('s', upTo)
    expect(await expectCode(log.read('s', { after: second }), 'log_trimmed')).toEqual({
      trimmed: upTo,
    })
    await expectCode(
      take(log.tail('s', { after: second })[Symbol.asyncIterator](), 1),
      'log_trimmed',
    )
    expect(texts(await log.read('s', { after: upTo }))).toEqual(['kept', 'dropped'])
    expect(texts(await log.read('s'))).toEqual(['kept', 'dropped'])
    const head = (await log.head('s')) ?? ''
    await log.trim('s', head)
    await expectCode(log.trim('s', '0000000000999999'), 'invalid_argument')
    log = (await subject.crash()).log
    expect(await log.head('s')).toBe(head)
    expect(await log.read('s')).toEqual([])
    const anew = await log.append('s', [bytes('anew')], { expect: head, dedup: ['dropped'] })
    expect(anew.duplicates).toEqual([])
    expect(anew.position > head).toBe(true)
  })

  test('lists streams by prefix, page by page', async () => {
    await using subject = await makeEngine()
    const { log } = subject.engine
    for (const name of ['run/b', 'run/a', 'run0', 'ru', 'run/c', 'z'])
      await log.append(name, [bytes('x')])
    const first = await log.list('run/', { limit: 2 })
    expect(first.streams.map(({ name }) => name)).toEqual(['run/a', 'run/b'])
    const second = await log.list('run/', { limit: 2, after: first.next ?? '' })
    expect(second).toEqual({ streams: [{ name: 'run/c', head: await log.head('run/c') }] })
    expect((await log.list('')).streams).toHaveLength(6)
    expect(await log.list('none')).toEqual({ streams: [] })
  })

  test('deletes a stream with all it has; the name starts anew, also after a crash in the middle', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    const count = 2 * SWEEP_ROWS_MAX + 10
    await fill(log, 's', count)
    const { position } = await log.append('s', [bytes('x')], { dedup: ['key'] })
    await log.checkpoint('s', position, bytes('state'))
    expect(await log.delete('s')).toBe(true)
    log = (await subject.crash()).log
    expect(await log.delete('s')).toBe(false)
    expect(await log.read('s')).toEqual([])
    expect(await log.head('s')).toBeUndefined()
    expect(await log.latestCheckpoint('s')).toBeUndefined()
    const anew = await log.append('s', [bytes('anew')], { expect: 'start', dedup: ['key'] })
    expect(anew.duplicates).toEqual([])
    expect(texts(await log.read('s'))).toEqual(['anew'])
  })

  test('keeps every acknowledged append over a crash, and whole batches of the others', async () => {
    await using subject = await makeEngine()
    let { log } = subject.engine
    const acknowledged = new Set<string>()
    const calls = Array.from({ length: 400 }, (_, n) =>
      log.append(`s${n % 7}`, [bytes(`${n}.0`), bytes(`${n}.1`)]).then(
        () => acknowledged.add(`${n}`),
        () => {},
      ),
    )
    await until(() => acknowledged.size > 0)
    log = (await subject.crash()).log
    await Promise.all(calls)
    const found: string[] = []
    for (let n = 0; n < 7; n++) found.push(...texts(await log.read(`s${n}`)))
    for (const n of acknowledged) expect(found).toContain(`${n}.0`)
    expect(new Set(found).size).toBe(found.length)
    for (const [at, name] of found.entries()) {
      if (name.endsWith('.0')) expect(found[at + 1]).toBe(name.replace(/0$/, '1'))
    }
  })
}

async function fill(log: Log, stream: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 2000) {
    const size = Math.min(2000, count - from)
    await log.append(
      stream,
      Array.from({ length: size }, (_, n) => bytes(`${from + n}`)),
    )
  }
}

async function readAll(log: Log, stream: string): Promise<LogRecord[]> {
  const all: LogRecord[] = []
  for (;;) {
    const after = all.at(-1)?.position
    const page = await log.read(stream, { limit: 10_000, ...(after !== undefined && { after }) })
    if (page.length === 0) return all
    all.push(...page)
  }
}

function texts(records: readonly LogRecord[]): string[] {
  return records.map((record) => text(record.bytes))
}
