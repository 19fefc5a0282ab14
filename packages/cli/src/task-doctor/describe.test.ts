import { expect, test } from 'vitest'
import { describeDiagnoses } from './describe.ts'
import type { Diagnosis } from './diagnose.ts'

const sound: Diagnosis = {
  key: 'a',
  findings: [],
  gold: { trials: 3, passes: 3 },
  null: { trials: 3, passes: 0 },
  goldP95Ms: 1_500,
  timeoutMs: 900_000,
  suggestedTimeoutMs: 10_000,
}

test('the worst stand first, and the last line counts', () => {
  const text = describeDiagnoses([
    sound,
    { ...sound, key: 'b', findings: [{ condition: 'tight', why: 'gold needs much' }] },
    {
      ...sound,
      key: 'c',
      gold: { trials: 3, passes: 0 },
      goldP95Ms: null,
      suggestedTimeoutMs: null,
      findings: [
        { condition: 'broken', why: 'gold: grade_error: one\n  two' },
        { condition: 'free', why: 'x'.repeat(300) },
      ],
    },
  ])
  const lines = text.split('\n')
  expect(lines.map((line) => line.split(/ {2,}/).slice(0, 7))).toEqual([
    ['', 'TASK', 'GOLD', 'NULL', 'GOLD P95', 'TIMEOUT', 'SUGGESTED'],
    ['broken', 'c', '0/3', '0/3', '-', '15m', '-'],
    ['tight', 'b', '3/3', '0/3', '1.5s', '15m', '10s'],
    ['sound', 'a', '3/3', '0/3', '1.5s', '15m', '10s'],
    [''],
    ['3 tasks: 1 sound, 1 tight, 1 broken; 1 should not be trained on as they are'],
  ])
  expect(lines[1]).toMatch(/gold: grade_error: one two; x+…$/)
})
