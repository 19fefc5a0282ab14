import { expect, test } from 'vitest'
import { checkReward } from './reward.ts'

test.each([
  [{}, null],
  [{ reward: 0 }, { reward: 0, rewards: null }],
  [{ reward: -1.5 }, { reward: -1.5, rewards: null }],
  [{ rewards: { a: 1 } }, { reward: null, rewards: { a: 1 } }],
  [
    { reward: 1, rewards: { a: 1 } },
    { reward: 1, rewards: { a: 1 } },
  ],
  [{ reward: Number.NaN }, 'the reward must be a finite number, not NaN'],
  [{ reward: Number.POSITIVE_INFINITY }, 'the reward must be a finite number, not Infinity'],
  [{ reward: '1' }, 'the reward must be a finite number, not 1'],
  [{ reward: null }, 'the reward must be a finite number, not null'],
  [{ reward: {} }, 'the reward must be a finite number, not an object'],
  [{ rewards: { a: '1' } }, 'rewards.a must be a finite number, not 1'],
  [{ rewards: [] }, 'rewards must be an object of finite numbers, not an object'],
  [{ rewards: {} }, 'rewards names none'],
  [{ rewards: { ['x'.repeat(200)]: 1 } }, 'a name in rewards is too long'],
])('%j', (given, expected) => {
  expect(checkReward(given)).toEqual(expected)
})
