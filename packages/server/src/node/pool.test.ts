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

test('what is started next has the layers that were asked for last', async () => {
  const clock = new HeldClock()
  const driver = new FakeDriver()
  const started: string[][] = []
  const createBlank = driver.createBlank.bind(driver)
  driver.createBlank = (options) => {
    started.push((options?.layers ?? []).map(({ digest }) => digest))
    return createBlank(options)
  }
  const pool = poolOf(driver, clock, 2)
  pool.fill()
  await until(() => pool.numbers.ready === 2)
  const layers = [{ digest: 'sha256:a', path: '/a' }]
  pool.take(layers)
  clock.held[0]?.callback()
  await until(() => pool.numbers.ready === 2)
  expect(started).toEqual([[], [], ['sha256:a']])

  // Not the one that waited longest: the one that has them.
  pool.take(layers)
  pool.take(layers)
  clock.held[1]?.callback()
  await until(() => pool.numbers.ready === 2)
  expect(started.slice(3)).toEqual([['sha256:a'], ['sha256:a']])
  await pool.close()
})

test('a taken blank is replaced after its owner had the processors for a while', async () => {
  const clock = new HeldClock()
  const pool = poolOf(new FakeDriver(), clock, 3)
  pool.fill()
  await until(() => pool.numbers.ready === 3)
  expect(clock.held).toEqual([])

  expect(pool.take([])).toBeDefined()
  expect(pool.take([])).toBeDefined()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 0, hits: 2 })
  // The second one prolongs nothing.
  expect(clock.held.map(({ delayMs }) => delayMs)).toEqual([SERVER_LIMITS.refillDelayMs])
  clock.held[0]?.callback()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 2 })
  await until(() => pool.numbers.ready === 3)
  await pool.close()
})

function poolOf(driver: FakeDriver, clock: Clock, target: number): BlankPool {
  const log = pino({ level: 'silent' })
  return new BlankPool({ driver, creations: new Creations(4), clock, log, target })
}
