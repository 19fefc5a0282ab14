import type { NetworkLimits } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { Allowance } from './allowance.ts'
import { limitsInForce } from './policy.ts'

const { signal } = new AbortController()

function allowance(limits: NetworkLimits) {
  const clock = { nowMs: 0 }
  const made = new Allowance(limitsInForce({ allow: [], limits }), 0, () => clock.nowMs)
  return { made, clock }
}

test('so many connections come at once, and more as the minute goes', () => {
  const { made, clock } = allowance({ connectionsPerMinute: 60 })
  const admitted = () => Array.from({ length: 100 }, () => made.admit()).filter(Boolean).length
  expect(admitted()).toBe(60)
  clock.nowMs = 999
  expect(admitted()).toBe(0)
  clock.nowMs = 3_000
  expect(admitted()).toBe(3)
  clock.nowMs = 1e9
  expect(admitted()).toBe(60)
})

test('bytes are used up, and nothing passes from then on', async () => {
  const { made } = allowance({ bytes: 100 })
  expect(made.metersBytes).toBe(true)
  await made.pass(60, signal)
  await made.pass(40, signal)
  expect(made.isSpent).toBe(true)
  await expect(made.pass(1, signal)).rejects.toMatchObject({
    kind: 'bytes_limit',
    message: expect.stringContaining('limits.bytes'),
  })
})

test('what is too much at once uses up the rest', async () => {
  const { made } = allowance({ bytes: 100 })
  await expect(made.pass(101, signal)).rejects.toMatchObject({ kind: 'bytes_limit' })
  await expect(made.pass(1, signal)).rejects.toMatchObject({ kind: 'bytes_limit' })
})

test('bytes of its life before count', async () => {
  const { made } = allowance({})
  expect(made.metersBytes).toBe(false)
  made.set(limitsInForce({ allow: [], limits: { bytes: 1_000 } }), 990)
  await made.pass(10, signal)
  expect(made.isSpent).toBe(true)
})

test('a wait for its turn ends with the connection', async () => {
  const { made } = allowance({ bytesPerSecond: 1_024 })
  const leaving = new AbortController()
  const waiting = made.pass(1_000_000, leaving.signal)
  leaving.abort()
  await expect(waiting).rejects.toThrow('aborted')
})
