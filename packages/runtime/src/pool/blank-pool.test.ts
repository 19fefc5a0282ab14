import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Blank, Wait } from '../driver.ts'
import { FakeDriver, type FakeDriverOptions } from '../fake/driver.ts'
import { BlankPool, type BlankPoolOptions } from './blank-pool.ts'

const pools: BlankPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool[Symbol.asyncDispose]()
})

/** A clock whose time passes when the test says so. */
function setup(options: Partial<BlankPoolOptions> = {}, fake: FakeDriverOptions = {}) {
  const due: (() => void)[] = []
  const delays: number[] = []
  const clock = {
    after: (delayMs: number, call: () => void) => {
      delays.push(delayMs)
      due.push(call)
      return () => void due.splice(due.indexOf(call), 1)
    },
  }
  const driver = new FakeDriver(fake)
  const pool = new BlankPool({ driver, size: 3, clock, ...options })
  pools.push(pool)
  const pass = () => {
    for (const call of due.splice(0)) call()
  }
  return { driver, pool, pass, delays }
}

const filled = (pool: BlankPool, ready: number) =>
  vi.waitFor(() => expect(pool.numbers.ready).toBe(ready), { interval: 1 })

describe('the pool of blanks', () => {
  test('fills to its size, and again after each that is taken', async () => {
    const { pool, driver } = setup()
    await filled(pool, 3)
    const blank = await pool.take()
    await filled(pool, 3)
    expect(driver.machine.size).toBe(4)
    expect(pool.numbers).toMatchObject({ taken: 1, misses: 0, starting: 0, waiting: 0 })
    await driver.stop(blank)
  })

  test('an empty pool starts for whoever waits, one start for each', async () => {
    const { pool, driver } = setup({ size: 0 })
    const blanks = await Promise.all([pool.take(), pool.take(), pool.take()])
    expect(new Set(blanks.map(({ hostId }) => hostId)).size).toBe(3)
    expect(driver.machine.size).toBe(3)
    expect(pool.numbers).toMatchObject({ taken: 3, misses: 3, ready: 0 })
  })

  test('replaces one that dies, after a pause', async () => {
    const { pool, driver, pass, delays } = setup({ size: 1 })
    await filled(pool, 1)
    const [first] = driver.machine.all()
    driver.kill(first?.hostId ?? '', 'lost')
    await filled(pool, 0)
    expect(delays).toEqual([100])
    pass()
    await filled(pool, 1)
    expect(pool.numbers.died).toBe(1)
  })

  test('a machine that starts nothing is asked ever more rarely', async () => {
    const { pool, pass, delays } = setup({ size: 1 }, { onStart: () => 'fail' })
    for (const wanted of [100, 200, 400, 800]) {
      await vi.waitFor(() => expect(delays.at(-1)).toBe(wanted), { interval: 1 })
      pass()
    }
    expect(pool.numbers).toMatchObject({ ready: 0 })
  })

  test('a failed start fails one who waits, not all', async () => {
    const { pool } = setup({ size: 0 }, { onStart: (start) => (start === 1 ? 'fail' : undefined) })
    const takes = await Promise.allSettled([pool.take(), pool.take()])
    expect(takes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('who gives up leaves his start to the next', async () => {
    let release: () => void = () => {}
    const blank: Blank = { hostId: 'b', gone: new Promise(() => {}) }
    const driver = {
      createBlank: ({ signal }: Wait = {}) =>
        new Promise<Blank>((resolve, reject) => {
          release = () => resolve(blank)
          signal?.addEventListener('abort', () => reject(signal.reason))
        }),
      stop: async () => ({ kind: 'stopped' as const, detail: '', usage: none }),
    }
    const { pool } = setup({ size: 1, driver })
    const giveUp = new AbortController()
    const first = pool.take({ signal: giveUp.signal })
    const second = pool.take()
    giveUp.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    release()
    expect(await second).toBe(blank)
  })

  test('closing stops all it holds and fails who waits', async () => {
    const { pool, driver } = setup({ size: 2 }, { onStart: (n) => (n > 2 ? 'hang' : undefined) })
    await filled(pool, 2)
    await pool.take()
    await pool.take()
    const waits = pool.take()
    const closing = pool[Symbol.asyncDispose]()
    await expect(waits).rejects.toMatchObject({ code: 'create_failed' })
    await closing
    expect(driver.machine.size).toBe(2)
    await expect(pool.take()).rejects.toMatchObject({ code: 'create_failed' })
  })

  test('a smaller size stops what is too much', async () => {
    const { pool, driver } = setup({ size: 3 })
    await filled(pool, 3)
    await pool.resize(1)
    expect(driver.machine.size).toBe(1)
    expect(pool.numbers).toMatchObject({ size: 1, ready: 1 })
  })
})

const none = { cpuMs: 0, memoryBytes: 0, memoryPeakBytes: 0 }
