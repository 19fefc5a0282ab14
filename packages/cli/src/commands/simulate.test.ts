import { simulatePool } from '@sandlot/core/sizing'
import { expect, test } from 'vitest'
import { groupOf, type PoolWords, poolOf } from './pool-words.ts'
import { balanceOf, describePools } from './simulate.ts'

const WORDS: PoolWords = {
  ...{ tasks: 40, create: '0ms', agent: '1m', modelCalls: 1, modelFailures: 0 },
  ...{ losses: 0, hardness: 0.5, batch: 4, seed: 1 },
}

test('the words of a group', () => {
  expect(groupOf('size=8,extra=2,cut=p90')).toEqual({
    ...{ by: 'prompt', size: 8, need: 7, extra: 2, cut: { after: 'p90' }, maxLag: null },
  })
  expect(groupOf('size=4, need=2 , cut=10m, maxLag=1')).toMatchObject({
    ...{ size: 4, need: 2, cut: { after: 600_000 }, maxLag: 1 },
  })
})

test.each([
  [{ group: 'members=8' }, '"members=8" is not part of a group'],
  [{ group: 'size=2,need=3' }, '--group need: 3 is more'],
  [{ group: 'size=8,cut=p101' }, '--group cut: '],
  [{ group: 'size=x' }, '--group size: '],
  [{ tasks: 1_000_001 }, '--tasks: 1000001 are 1000001 episodes'],
  [{ tasks: 200_000, group: 'size=5,extra=1' }, '1200000 episodes, and a run has at most 1000000'],
  [{ agent: 'long' }, '--agent'],
  [{ model: 'lognormal:1s' }, '--model'],
  [{ losses: 1 }, '--losses: 1 is not a share'],
  [{ hedge: 'soon' }, '--hedge'],
  [{ ahead: 4 }, '--ahead'],
  [{ modelCalls: 3 }, '--model-calls'],
  [{ modelFailures: 0.1 }, 'there is none'],
  [{ trainerStep: '' }, '--trainer-step'],
])('%o is refused by name', (wrong, message) => {
  expect(() => poolOf({ ...WORDS, ...wrong })).toThrow(message)
})

test('pools are told beside one another, with their balance', () => {
  const pool = poolOf({ ...WORDS, tasks: 200, trainerStep: '20s' })
  const found = [6, 12].map((concurrency) => simulatePool({ ...pool, concurrency }))
  const balance = balanceOf(found)
  expect(balance).toBeGreaterThanOrEqual(12)
  expect(balance).toBeLessThanOrEqual(13)
  const lines = describePools(found, balance).split('\n')
  expect(lines[0]).toMatch(/^SLOTS +ALL DONE .* TRAINER WAITS .* LIMITED BY$/)
  expect(lines[1]).toMatch(/^6 .* concurrency$/)
  expect(lines.join('\n')).toContain(`balance: about ${balance} slots`)
})

test('without a trainer nothing balances, and the reason is told', () => {
  const found = [simulatePool({ ...poolOf(WORDS), concurrency: 4 })]
  expect(balanceOf(found)).toBeNull()
  expect(describePools(found, null)).toContain('no balance: there is no trainer')
})
