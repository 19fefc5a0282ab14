import type { ExecResult } from '@sandlot/runtime'
import { describe, expect, test } from 'vitest'
import { metLimits, watchLimits } from './met-limits.ts'

const none = { totalBytes: 0, droppedBytes: 0 }
const result: ExecResult = {
  ...{ exitCode: 0, timedOut: false, killed: false, durationUs: 1_000_000, left: 0, limits: [] },
  counts: { stdout: none, stderr: none },
}

describe('limits that a command met', () => {
  test.each([
    ['none', result, []],
    ['its deadline', { ...result, timedOut: true }, ['time']],
    [
      'what is kept of its output',
      { ...result, counts: { stdout: none, stderr: { totalBytes: 9, droppedBytes: 1 } } },
      ['output'],
    ],
    ['those of its world', { ...result, limits: ['pids', 'disk'] }, ['pids', 'disk']],
  ] as const)('%s', (_, met, words) => {
    expect(metLimits(met)).toEqual(words)
  })

  test.each([
    ['for long', [40, 190], ['cpu']],
    ['for a moment', [40, 139], []],
    ['before it began', [5_000, 5_000], []],
  ])('held up %s', async (_, readings, words) => {
    const left = [...readings]
    const met = await watchLimits({ heldUpMs: async () => left.shift() ?? 0 })
    expect(await met(result)).toEqual(words)
  })

  test('held up for a small part of its time', async () => {
    const left = [0, 150]
    const met = await watchLimits({ heldUpMs: async () => left.shift() ?? 0 })
    expect(await met({ ...result, durationUs: 10_000_000 })).toEqual([])
  })

  test('of a sandbox that has died meanwhile', async () => {
    const heldUpMs = () => Promise.reject(new Error('gone'))
    expect(await (await watchLimits({ heldUpMs }))({ ...result, timedOut: true })).toEqual(['time'])
  })
})
