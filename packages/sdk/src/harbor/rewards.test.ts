import { expect, test } from 'vitest'
import { combineRewards, fallsShort, parseRewards } from './rewards.ts'

test.each([
  ['1\n', { reward: 1 }],
  ['.5', { reward: 0.5 }],
  ['{"reward": 1, "style": 0.25}', { reward: 1, style: 0.25 }],
])('%j gives %j', (text, rewards) => expect(parseRewards(text)).toEqual(rewards))

test.each(['', 'yes', 'nan', 'null', 'true', '[1]', '{}', '{"reward": "1"}', '{"a": null}'])(
  '%j gives nothing',
  (text) => expect(() => parseRewards(text)).toThrow('it holds no number'),
)

test('rewards of steps become one', () => {
  const steps = [{ reward: 1, a: 1 }, { reward: 0 }]
  expect(combineRewards(steps, 'mean')).toEqual({ reward: 0.5, a: 0.5 })
  expect(combineRewards(steps, 'final')).toEqual({ reward: 0 })
})

test('what is below the least, or not there, falls short', () => {
  expect(fallsShort({ reward: 0.5 }, {})).toBe(false)
  expect(fallsShort({ reward: 0.5 }, { reward: 0.5 })).toBe(false)
  expect(fallsShort({ reward: 0.4 }, { reward: 0.5 })).toBe(true)
  expect(fallsShort({ reward: 1 }, { tests: 0 })).toBe(true)
})
