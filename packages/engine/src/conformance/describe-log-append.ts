import { expect, test } from 'vitest'
import { APPEND_BYTES_MAX } from '../limits.ts'
import { bytes, expectCode, type MakeEngine, texts } from './engine-under-test.ts'

export function describeLogAppend(makeEngine: MakeEngine): void {
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
