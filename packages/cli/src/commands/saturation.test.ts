import type { RunReport } from 'sandlot'
import { expect, test } from 'vitest'
import { describeSaturation, saturationNow } from './saturation.ts'

const TOLD = {
  limiting: 'concurrency',
  run: { state: 'running', concurrency: 16 },
  saturation: {
    evidence: 'all 16 slots hold an episode, and 40 wait to begin',
    limitedMs: { tail: 10_000, concurrency: 90_000, none: 0 },
    slotsBusy: 0.97,
    trainer: { waitedMs: 40_000, busyMs: 60_000, waitShare: 0.4, taken: 12 },
    producer: { waitedMs: 0, waitShare: 0 },
    balance: { concurrency: 27, why: 'one row takes 2m of slots to make' },
  },
} as unknown as RunReport

test('who waits for whom is told in words', () => {
  expect(describeSaturation(TOLD)).toEqual([
    ['limited by', 'concurrency: all 16 slots hold an episode, and 40 wait to begin'],
    ['limited over all', 'concurrency 90.0 %, tail 10.0 %'],
    ['slots', '97.0 % of 16 held an episode'],
    ['trainer waited', '40s, 40.0 % of its time'],
    ['held by trainer', '-'],
    ['balance', '27 slots, and there are 16: one row takes 2m of slots to make'],
  ])
  expect(saturationNow(TOLD)).toBe(
    'limited by concurrency, trainer waited 40.0 %, balanced with 27 slots',
  )
})

test('of what is not known nothing is made up', () => {
  const { saturation: _, ...older } = TOLD
  expect(describeSaturation(older)).toEqual([['limited by', 'concurrency']])
  expect(saturationNow({ ...older, limiting: 'none' })).toBe('')
  const saturation = {
    ...(TOLD.saturation as NonNullable<RunReport['saturation']>),
    trainer: null,
    balance: { concurrency: null, why: 'nobody has read results yet' },
  }
  const lines = describeSaturation({ ...TOLD, saturation })
  expect(lines).toContainEqual(['trainer waited', 'nobody has read results yet'])
  expect(lines).toContainEqual(['balance', '- (nobody has read results yet)'])
})
