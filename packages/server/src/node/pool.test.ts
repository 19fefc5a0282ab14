import type { Clock } from '@sandlot/engine'
import { FakeDriver } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { until } from '../testing/until.ts'
import { Creations } from './creations.ts'
import { BlankPool } from './pool.ts'

/** Holds what was asked of it until it is told to call back. */
class HeldClock implements Clock {
  readonly held: { readonly delayMs: number; readonly callback: () => void }[] = []

  now(): number {
    return 0
  }

  after(delayMs: number, callback: () => void): () => void {
    this.held.push({ delayMs, callback })
    return () => {}
  }
}

test('a taken blank is replaced after its owner had the processors for a while', async () => {
  const clock = new HeldClock()
  const pool = new BlankPool({
    driver: new FakeDriver(),
    creations: new Creations(4),
    clock,
    log: pino({ level: 'silent' }),
    target: 3,
  })
  pool.fill()
  await until(() => pool.numbers.ready === 3)
  expect(clock.held).toEqual([])

  expect(pool.take()).toBeDefined()
  expect(pool.take()).toBeDefined()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 0, hits: 2 })
  // The second one prolongs nothing.
  expect(clock.held.map(({ delayMs }) => delayMs)).toEqual([SERVER_LIMITS.refillDelayMs])
  clock.held[0]?.callback()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 2 })
  await until(() => pool.numbers.ready === 3)
  await pool.close()
})
