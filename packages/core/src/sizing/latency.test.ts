import { expect, test } from 'vitest'
import { createRandom } from '../simulation/random.ts'
import { drawMs, formatLatency, medianMsOf, parseLatency } from './latency.ts'

test.each([
  ['30s', { kind: 'fixed', ms: 30_000 }],
  ['fixed:1m', { kind: 'fixed', ms: 60_000 }],
  ['uniform:1s,5s', { kind: 'uniform', leastMs: 1_000, mostMs: 5_000 }],
  ['exponential:3s', { kind: 'exponential', meanMs: 3_000 }],
  [' lognormal: 30s , 1.2 ', { kind: 'lognormal', medianMs: 30_000, sigma: 1.2 }],
])('%s', (text, latency) => {
  expect(parseLatency(text)).toEqual(latency)
  expect(parseLatency(formatLatency(parseLatency(text)))).toEqual(latency)
})

test.each([
  ...['', '30', 'normal:3s,1', 'lognormal:30s', 'lognormal:30s,', 'lognormal:30s,-1'],
  ...['lognormal:30s,9', 'uniform:5s,1s', 'uniform:5s', '30s,1.2', 'exponential:3s,1', 'fixed:'],
])('%o is refused', (text) => {
  expect(() => parseLatency(text)).toThrow("give '30s'")
})

test.each(['30s', 'uniform:1s,5s', 'exponential:3s', 'lognormal:30s,1.2'])(
  'half of what %s gives is below its median',
  (text) => {
    const latency = parseLatency(text)
    const random = createRandom(1)
    const drawn = Array.from({ length: 4_001 }, () => drawMs(latency, random))
    const middle = drawn.sort((a, b) => a - b)[2_000] ?? 0
    expect(middle / medianMsOf(latency)).toBeGreaterThan(0.93)
    expect(middle / medianMsOf(latency)).toBeLessThan(1.07)
    expect(drawn[0]).toBeGreaterThanOrEqual(0)
  },
)
