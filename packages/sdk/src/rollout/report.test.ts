import { LIMITS, workerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { ModelError } from './model-error.ts'
import { causesOf, reportOfEpisode, reportOfFailure, reportOfVerdict } from './report.ts'

const store = async () => 'sha256:stored'
const cyclic: Record<string, unknown> = {}
cyclic.self = cyclic

describe('what an episode returned', () => {
  test.each([
    [undefined, { kind: 'returned' }],
    [null, { kind: 'returned' }],
    [{}, { kind: 'returned' }],
    [{ reward: -0.5 }, { kind: 'returned', reward: -0.5 }],
    [{ rewards: { a: 1, b: 0 } }, { kind: 'returned', rewards: { a: 1, b: 0 } }],
    [{ limit: 'turns' }, { kind: 'returned', limit: 'turns' }],
    [{ data: { x: [1] } }, { kind: 'returned', dataJson: '{"x":[1]}' }],
    [{ data: null }, { kind: 'returned', dataJson: 'null' }],
    [{ data: 'x'.repeat(LIMITS.inlineBytes) }, { kind: 'returned', dataBlob: 'sha256:stored' }],
  ])('%j is taken', async (returned, report) => {
    expect(await reportOfEpisode(returned, store)).toEqual(report)
  })

  test.each([
    1,
    'done',
    true,
    { reward: Number.NaN },
    { reward: Number.NEGATIVE_INFINITY },
    { reward: '1' },
    { reward: null },
    { rewards: {} },
    { rewards: [1] },
    { rewards: JSON.parse('{"__proto__": 1}') },
    { rewards: { a: Number.NaN } },
    { rewards: Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`name-${i}`, i])) },
    { limit: 3 },
    { data: cyclic },
    { data: { logprobs: [-0.1, Number.NaN] } },
    { data: { seen: new Map() } },
    { data: () => 1 },
    { data: 1n },
    { data: 'x'.repeat(LIMITS.payloadBytes) },
  ])('%# is no result', async (returned) => {
    const report = await reportOfEpisode(returned, store)
    expect(report).toMatchObject({ kind: 'invalid', cause: [expect.any(String)] })
    expect(workerReport.safeParse(report).success).toBe(true)
  })

  test('says where its data is none', async () => {
    const report = await reportOfEpisode({ data: { logprobs: [-0.1, Number.NaN] } }, store)
    const cause = [expect.stringContaining('data.logprobs[1] is NaN: pass plain data')]
    expect(report).toMatchObject({ cause })
  })
})

test('a verdict is a finite number, alone or named', () => {
  expect(reportOfVerdict(0)).toEqual({ kind: 'returned', reward: 0 })
  expect(reportOfVerdict({ reward: 1 })).toEqual({ kind: 'returned', reward: 1 })
  expect(reportOfVerdict({ rewards: { a: 1 } })).toEqual({ kind: 'returned', rewards: { a: 1 } })
  const both = { reward: 1, rewards: { style: 0.5 } }
  expect(reportOfVerdict(both)).toEqual({ kind: 'returned', ...both })
  for (const half of [
    { ...both, reward: '1' },
    { ...both, rewards: { style: Number.NaN } },
  ]) {
    expect(reportOfVerdict(half)).toMatchObject({ kind: 'invalid' })
  }
  for (const verdict of [undefined, null, true, '1', Number.NaN, {}, { rewards: {} }]) {
    expect(reportOfVerdict(verdict)).toMatchObject({ kind: 'invalid' })
  }
})

describe('what was thrown', () => {
  test('is told with its causes, the model apart', () => {
    const thrown = new TypeError('outer', { cause: new Error('inner', { cause: 'text' }) })
    const cause = ['TypeError: outer', 'Error: inner', 'text']
    expect(reportOfFailure(thrown)).toEqual({ kind: 'threw', cause })
    expect(reportOfFailure(new ModelError('m'))).toMatchObject({ kind: 'model_failed' })
    class Foreign extends Error {
      override readonly name = 'ModelError'
    }
    expect(reportOfFailure(new Foreign('m'))).toMatchObject({ kind: 'model_failed' })
    expect(reportOfFailure(undefined)).toEqual({ kind: 'threw', cause: ['undefined was thrown'] })
    const several = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })
    expect(causesOf(several)).toEqual(['AggregateError: ECONNREFUSED'])
    expect(causesOf({ status: 503, body: 'x'.repeat(9_999) })[0]).toMatch(
      /^\{ status: 503, body: 'x{200}'\.\.\./,
    )
  })

  test('may throw itself when it is looked at', () => {
    const refuse = () => {
      throw new Error('no')
    }
    const opaque = new Proxy({}, { get: refuse, getPrototypeOf: refuse })
    const spoilt = Object.defineProperty(new Error('e'), 'cause', { get: refuse })
    for (const thrown of [opaque, spoilt]) {
      expect(reportOfFailure(thrown)).toMatchObject({ kind: 'threw', cause: [expect.any(String)] })
    }
  })

  test('is bounded, whatever it is', () => {
    const endless = new Error('e'.repeat(100_000))
    endless.cause = endless
    const silent = {
      toString() {
        throw new Error('no')
      },
    }
    for (const thrown of [endless, silent, Object.create(null)]) {
      const causes = causesOf(thrown)
      expect(causes.length).toBeGreaterThan(0)
      expect(causes.join('').length).toBeLessThanOrEqual(8_192)
    }
  })
})
