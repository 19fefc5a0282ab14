import { expect, test } from 'vitest'
import { imageLimits } from '../limits.ts'
import { OutputLines } from './output-lines.ts'

test('of too much output the beginning and the last lines are shown', () => {
  const shown: string[] = []
  const lines = new OutputLines((line) => shown.push(line))
  const noise = Buffer.from(`${'x'.repeat(1000)}\n`.repeat(1000))
  lines.take('stdout', Buffer.from('begun\n'))
  for (let had = 0; had < 2 * imageLimits.stepLogBytesMax; had += noise.length) {
    lines.take('stdout', noise)
  }
  lines.take('stderr', Buffer.from('why it failed\nand the last words'))
  lines.end()
  expect(shown[0]).toBe('begun')
  expect(shown.slice(-2)).toEqual(['why it failed', 'and the last words'])
  expect(shown.filter((line) => line.startsWith('(more than'))).toHaveLength(1)
  const sizeBytes = shown.reduce((sum, line) => sum + line.length, 0)
  expect(sizeBytes).toBeLessThan(imageLimits.stepLogBytesMax + 100_000)
})
