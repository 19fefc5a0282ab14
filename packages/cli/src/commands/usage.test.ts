import type { UsageReport } from 'sandlot'
import { expect, test } from 'vitest'
import { formatMicros } from './money.ts'
import { describeUsage } from './usage.ts'

const metered = (seconds: number, costMicros: number | null) => ({
  sandboxes: 3,
  seconds,
  allocated: {
    cpuSeconds: seconds / 10,
    memoryGibSeconds: seconds,
    diskGibSeconds: 0,
    gpuSeconds: 0,
  },
  used: { cpuSeconds: 36, networkBytes: 0 },
  costMicros,
})
const REPORT: UsageReport = {
  ...{ from: '2026-03-01T00:00:00.000Z', to: '2026-03-02T00:00:00.000Z', by: 'run' },
  currency: 'USD',
  lines: [
    {
      ...{ project: 'default', kind: 'episode', run: 'nightly' },
      ...metered(7_200, 1_250_000),
      retries: metered(60, 2_500),
    },
    { project: 'default', kind: 'sandbox', ...metered(3_600, 0), retries: metered(0, 0) },
  ],
  total: { ...metered(10_800, 1_250_000), retries: metered(60, 2_500) },
  idle: { sandboxSeconds: 600, memoryGibSeconds: 3_600 },
}

test('a line for each, their sum, and the pool beside it', () => {
  expect(describeUsage(REPORT).split('\n')).toEqual([
    'PROJECT  RUN                     SANDBOXES  TIME  CPU HOURS  USED   GIB HOURS  RETRIES     COST',
    'default  nightly                 3          2h    0.200      0.010  2.000      0.0025 USD  1.25 USD',
    'default  (sandboxes of clients)  3          1h    0.100      0.010  1.000      -           0.00 USD',
    'total                            3          3h    0.300      0.010  3.000      0.0025 USD  1.25 USD',
    '',
    'beside it the pool: 10m of sandboxes that waited, 1.000 GiB hours',
  ])
})

test.each(['run', 'day', 'project'] as const)('by %s, what is no project’s has a dash', (by) => {
  const build = { project: '', kind: 'build', ...metered(60, 0), retries: metered(0, 0) } as const
  const row = describeUsage({ ...REPORT, by, lines: [build] }).split('\n')[1]
  expect(row).toMatch(by === 'run' ? /^- +\(builds\) / : /^ *- +3 /)
})

test('without prices time alone is told', () => {
  const lines = REPORT.lines.map((line) => ({
    ...line,
    costMicros: null,
    retries: { ...line.retries, costMicros: null },
  }))
  const total = { ...REPORT.total, costMicros: null }
  const text = describeUsage({ ...REPORT, lines, total, currency: null })
  expect(text).toContain('no prices are set (SANDLOT_PRICES)')
  expect(text).not.toContain('USD')
})

test.each([
  [0, '0.00'],
  [1, '0.000001'],
  [1_234_567, '1.234567'],
  [2_500_000, '2.50'],
])('%d millionths are %s', (micros, text) => {
  expect(formatMicros(micros, null)).toBe(text)
  expect(formatMicros(micros, 'EUR')).toBe(`${text} EUR`)
})
