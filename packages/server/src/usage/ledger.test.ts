import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, openSqliteEngine } from '@sandlot/engine'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { DAY_MS, HOUR_MS } from './day-book.ts'
import { Ledger } from './ledger.ts'
import type { MeteredStretch } from './metered.ts'

const DAY = Date.parse('2026-03-01T00:00:00Z')

let directory: string
let engine: Engine
let nowMs: number
/** What is to be recorded soon never is by the clock alone: it stands. */
const open = (options: { retainMs?: number } = {}) =>
  new Ledger(engine, { now: () => nowMs, after: () => () => {} }, options)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ledger-'))
  engine = await openSqliteEngine({ directory })
  nowMs = DAY
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

const stretch = (key: string, more: Partial<MeteredStretch> = {}): MeteredStretch => ({
  ...{ key, fromMs: DAY, toMs: DAY + 1_000, project: 'p', kind: 'sandbox', run: null },
  ...{
    retry: false,
    sandboxes: 1,
    ms: 1_000,
    cpuMs: 100,
    memoryMibMs: 20_000,
    diskMibMs: 0,
    gpuMs: 0,
  },
  ...{ usedCpuMs: 5, networkBytes: 0, micros: 7 },
  ...more,
})

async function sums(ledger: Ledger, fromMs = DAY - DAY_MS, toMs = DAY + 10 * DAY_MS) {
  const lines = await ledger.lines(fromMs, toMs)
  const sum = (of: (line: (typeof lines)[number]) => number) =>
    lines.reduce((total, line) => total + of(line), 0)
  return {
    sandboxes: sum(({ sum: each }) => each.sandboxes),
    ms: sum(({ sum: each }) => each.ms),
    micros: sum(({ sum: each }) => each.micros ?? 0),
  }
}

test('what is recorded is there for the next, and what is recorded again counts once', async () => {
  const ledger = open()
  await Promise.all([ledger.record(stretch('a')), ledger.record(stretch('b'))])
  expect(await sums(ledger)).toEqual({ sandboxes: 2, ms: 2_000, micros: 14 })
  const next = open()
  await next.record(stretch('b', { toMs: DAY + 9_000, ms: 9_000 }))
  expect(await sums(next)).toEqual({ sandboxes: 2, ms: 2_000, micros: 14 })
})

test('a stretch over midnight is in both days, and found again as one', async () => {
  const ledger = open()
  const over = { fromMs: DAY + DAY_MS - HOUR_MS, toMs: DAY + DAY_MS + HOUR_MS, ms: 2 * HOUR_MS }
  await ledger.record(stretch('a', over))
  await open().record(stretch('a', over))
  const first = await sums(open(), DAY, DAY + DAY_MS)
  const second = await sums(open(), DAY + DAY_MS, DAY + 2 * DAY_MS)
  expect(first).toMatchObject({ sandboxes: 1, ms: HOUR_MS })
  expect(second).toMatchObject({ sandboxes: 0, ms: HOUR_MS })
  expect(first.micros + second.micros).toBe(7)
})

test('only the hours that are asked for', async () => {
  const ledger = open()
  for (let hour = 0; hour < 4; hour++) {
    const fromMs = DAY + hour * HOUR_MS
    await ledger.record(stretch(`h${hour}`, { fromMs, toMs: fromMs + 1_000 }))
  }
  expect((await sums(ledger, DAY + HOUR_MS, DAY + 3 * HOUR_MS)).sandboxes).toBe(2)
})

test('sums stand for what was counted, however much comes, and however often it is read back', async () => {
  const count = 2 * SERVER_LIMITS.usageUncounted + 500
  const ledger = open()
  await Promise.all(Array.from({ length: count }, (_, i) => ledger.record(stretch(`s${i}`))))
  expect(await sums(ledger)).toMatchObject({ sandboxes: count, micros: 7 * count })
  const next = open()
  expect(await sums(next)).toMatchObject({ sandboxes: count })
  // What was recorded shortly before a kill is still known.
  await next.record(stretch(`s${count - 1}`))
  await next.record(stretch('new'))
  expect(await sums(open())).toMatchObject({ sandboxes: count + 1 })
  const [stream] = (await engine.log.list('usage/')).streams
  const kept = await engine.log.read(stream?.name ?? '', { limit: 10_000 })
  expect(kept.length).toBeLessThan(count / 256)
})

test('days that are over are summed, and those that nobody is told of are gone', async () => {
  const ledger = open()
  await ledger.record(stretch('a'))
  nowMs = DAY + 3 * DAY_MS
  await ledger.record(stretch('b', { fromMs: nowMs, toMs: nowMs + 1_000 }))
  await ledger.tidy()
  expect(await sums(ledger)).toMatchObject({ sandboxes: 2 })
  expect(await sums(open())).toMatchObject({ sandboxes: 2 })
  nowMs = DAY + SERVER_LIMITS.usageMs + 2 * DAY_MS
  await ledger.tidy()
  expect(await sums(ledger)).toMatchObject({ sandboxes: 1 })
  const shorter = open({ retainMs: 30 * DAY_MS })
  await shorter.tidy()
  expect((await engine.log.list('usage/')).streams).toEqual([])
})

test('what is recorded soon is told at once, and there once it was', async () => {
  const ledger = open()
  ledger.recordSoon(stretch('a'), () => {})
  expect(await sums(ledger)).toMatchObject({ sandboxes: 1 })
  expect(await sums(open())).toMatchObject({ sandboxes: 1 })
})

test('a record that can’t be written is told to whoever wrote it, and the next goes on', async () => {
  const ledger = open()
  await expect(ledger.record(stretch('x'.repeat(300_000)))).rejects.toThrow()
  await ledger.record(stretch('a'))
  expect(await sums(ledger)).toMatchObject({ sandboxes: 1 })
})

test('a day in whose oldest records each stretch is by itself is told and written to all the same', async () => {
  await engine.log.append('usage/2026-03-01', [encodeJson(stretch('old'))])
  const ledger = open()
  await ledger.record(stretch('new'))
  expect(await sums(ledger)).toMatchObject({ sandboxes: 2, ms: 2_000 })
  expect(await sums(open())).toMatchObject({ sandboxes: 2, ms: 2_000 })
})
