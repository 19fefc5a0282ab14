import { expect, test } from 'vitest'
import { SWEEP_ROWS_MAX } from '../limits.ts'
import type { Log, LogRecord } from '../log.ts'
import {
  bytes,
  expectCode,
  type MakeEngine,
  take,
  text,
  texts,
  until,
} from './engine-under-test.ts'

export function describeLogKeep(makeEngine: MakeEngine): void {
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
