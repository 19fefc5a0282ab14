import { expect, test } from 'vitest'
import { mapInputs } from './map-inputs.ts'

const prepare = async (input: number) => input

test('rows come as they land, or in the order of their inputs', async () => {
  for (const ordered of [false, true]) {
    const ends = [0, 1, 2].map(() => Promise.withResolvers<void>())
    const run = async (input: number) => {
      await ends[input]?.promise
      return input
    }
    const rows = mapInputs({ inputs: [0, 1, 2], ahead: 10, prepare, run, ordered })
    const first = rows.next()
    ends[1]?.resolve()
    if (!ordered) expect((await first).value).toBe(1)
    const second = rows.next()
    ends[2]?.resolve()
    if (!ordered) expect((await second).value).toBe(2)
    ends[0]?.resolve()
    expect((await (ordered ? first : rows.next())).value).toBe(0)
    if (ordered) expect((await second).value).toBe(1)
    await rows.return(undefined)
  }
})

test('inputs that never end are taken no faster than rows are read', async () => {
  let taken = 0
  const closed = Promise.withResolvers<void>()
  function* forever() {
    try {
      for (;;) yield taken++
    } finally {
      closed.resolve()
    }
  }
  let rows = 0
  const run = async (input: number) => input
  for await (const _ of mapInputs({ inputs: forever(), ordered: false, ahead: 5, prepare, run })) {
    rows += 1
    expect(taken - rows).toBeLessThanOrEqual(6)
    if (rows === 20) break
  }
  await closed.promise
})

test('an iterable that throws, a bad input and an abort end it', async () => {
  function* throwing() {
    yield 1
    throw new Error('half-way')
  }
  const run = async (input: number) => input
  const given = { ordered: false, ahead: 5, prepare, run }
  const all = (mapping: Parameters<typeof mapInputs<number, number, number>>[0]) =>
    Array.fromAsync(mapInputs(mapping))
  await expect(all({ ...given, inputs: throwing() })).rejects.toThrow('half-way')
  const refuse = async () => {
    throw new TypeError('input 0 is a function')
  }
  await expect(all({ ...given, inputs: [1], prepare: refuse })).rejects.toThrow('is a function')
  const stop = new AbortController()
  const never = () => new Promise<number>(() => {})
  const waiting = all({ ...given, inputs: [1], run: never, signal: stop.signal })
  stop.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  expect(await all({ ...given, inputs: [] })).toEqual([])
})
