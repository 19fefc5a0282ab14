import type { Clock } from '@sandlot/engine'
import { FakeDriver } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { until } from '../testing/until.ts'
import { Creations } from './creations.ts'
import { BlankPool } from './pool.ts'
import type { Wanted } from './waiting-blanks.ts'

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

test('what is started next is made for who came last, and a miss makes room for them', async () => {
  const clock = new HeldClock()
  const driver = new FakeDriver()
  const started: string[] = []
  const createBlank = driver.createBlank.bind(driver)
  driver.createBlank = (options = {}) => {
    const { world, layers = [] } = options
    started.push(world ? `world ${world.hostname}` : layers.map(({ digest }) => digest).join())
    return createBlank(options)
  }
  const pool = poolOf(driver, clock, 2)
  pool.fill()
  await until(() => pool.numbers.ready === 2)
  const goOn = async () => {
    clock.held.pop()?.callback()
    await until(() => pool.numbers.ready === 2)
  }
  pool.take(wantedBy('one'))
  await goOn()
  expect(started).toEqual(['', '', 'world one'])

  for (let take = 1; take <= SERVER_LIMITS.takesAlike; take++) {
    pool.take(wantedBy('two'))
    await goOn()
  }
  // The open world of the other sort stood in the way of one of their own.
  expect(started.slice(3)).toEqual(['sha256:a', 'sha256:a', 'sha256:a', 'world two', 'sha256:a'])
  await pool.close()
})

test('a taken blank is replaced after its owner had the processors for a while', async () => {
  const clock = new HeldClock()
  const pool = poolOf(new FakeDriver(), clock, 3)
  pool.fill()
  await until(() => pool.numbers.ready === 3)
  expect(clock.held).toEqual([])

  expect(pool.take(wantedBy('box'))).toBeDefined()
  expect(pool.take(wantedBy('box'))).toBeDefined()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 0, hits: 2 })
  // The second one prolongs nothing.
  expect(clock.held.map(({ delayMs }) => delayMs)).toEqual([SERVER_LIMITS.refillDelayMs])
  clock.held[0]?.callback()
  expect(pool.numbers).toMatchObject({ ready: 1, starting: 2 })
  await until(() => pool.numbers.ready === 3)
  await pool.close()
})

function wantedBy(hostname: string): Wanted {
  const limits = { memoryBytes: 1, cpus: 1, pidsMax: 1, diskBytes: 1, nofileMax: 1 }
  return { hostname, limits, layers: [{ digest: 'sha256:a', path: '/a' }] }
}

function poolOf(driver: FakeDriver, clock: Clock, target: number): BlankPool {
  const log = pino({ level: 'silent' })
  return new BlankPool({ driver, creations: new Creations(4), clock, log, target })
}
