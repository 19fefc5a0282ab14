import { groupSpec } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { simulatePool } from './simulate-pool.ts'

const minute = { kind: 'fixed', ms: 60_000 } as const
const heavy = { kind: 'lognormal', medianMs: 60_000, sigma: 1 } as const
const free = { kind: 'fixed', ms: 0 } as const

test('a seed gives the same again, and another seed another', () => {
  const pool = { tasks: 50, concurrency: 10, agent: heavy, seed: 3 }
  expect(simulatePool(pool)).toEqual(simulatePool(pool))
  expect(simulatePool({ ...pool, seed: 4 }).elapsedMs).not.toBe(simulatePool(pool).elapsedMs)
})

test('episodes that all take the same fill their slots in rounds', () => {
  const found = simulatePool({ tasks: 40, concurrency: 10, agent: minute, create: free })
  expect(found).toMatchObject({ episodes: 40, complete: 40, failed: 0, stragglers: null })
  // Four rounds, and what it takes to end a sandbox.
  expect(found.elapsedMs).toBeGreaterThanOrEqual(240_000)
  expect(found.elapsedMs).toBeLessThan(241_000)
  expect(found.idleShare).toBeLessThan(0.001)
  expect(found.trainerWaitShare).toBeNull()
  expect(found.bias.lostShare).toBe(0)
})

test('the balance is where the trainer takes as much as the pool makes', () => {
  // A minute for a result, eight of them each 20 s: 24 slots.
  const trainer = { batch: 8, step: { kind: 'fixed', ms: 20_000 } } as const
  const pool = { tasks: 800, agent: minute, create: free, trainer }
  const few = simulatePool({ ...pool, concurrency: 12 })
  expect(few.balance.concurrency).toBeGreaterThanOrEqual(24)
  expect(few.balance.concurrency).toBeLessThanOrEqual(25)
  expect(few.trainerWaitShare).toBeGreaterThan(0.45)
  const balanced = simulatePool({ ...pool, concurrency: few.balance.concurrency ?? 0 })
  expect(balanced.trainerWaitShare).toBeLessThan(0.1)
  const many = simulatePool({ ...pool, concurrency: 96, ahead: 32 })
  expect(many.trainerWaitShare).toBeLessThan(0.05)
  expect(many.limitedMs.consumer).toBeGreaterThan(0)
  expect(many.idleShare).toBeGreaterThan(0.5)
  expect(many.balance.concurrency).toBeGreaterThanOrEqual(23)
  expect(many.balance.concurrency).toBeLessThanOrEqual(26)
})

test('a model that answers one at a time is what limits', () => {
  const model = { latency: minute, calls: 1, slots: 1, failures: 0 }
  const found = simulatePool({ tasks: 10, concurrency: 5, agent: free, create: free, model })
  expect(found.elapsedMs).toBeGreaterThanOrEqual(600_000)
  expect(found.modelShare).toBeGreaterThan(0.9)
  expect(found.limitedMs.model).toBeGreaterThan(0)
})

test('what fails is tried again, and nothing is lost', () => {
  const model = { latency: { kind: 'exponential', meanMs: 1_000 }, calls: 3, slots: 4 } as const
  const found = simulatePool({
    ...{ tasks: 100, concurrency: 20, agent: heavy, losses: 0.1, grade: { ...minute, ms: 500 } },
    model: { ...model, failures: 0.05 },
  })
  expect(found).toMatchObject({ episodes: 100, complete: 100, failed: 0 })
})

test('a model that fails more often than not is simulated to the end', () => {
  const model = { latency: { kind: 'exponential', meanMs: 100 }, calls: 2, slots: 4 } as const
  const found = simulatePool({
    ...{ tasks: 200, concurrency: 8, agent: minute, model: { ...model, failures: 0.9 } },
  })
  expect(found).toMatchObject({ episodes: 200 })
  expect(found.failed).toBeGreaterThan(100)
})

test('a cut ends a heavy-tailed batch sooner, and what it keeps is quicker and right more often', () => {
  const whole = groupSpec.parse({ size: 8 })
  const cut = groupSpec.parse({ size: 8, extra: 2, need: 6, cut: { after: 'p90' } })
  const pool = { tasks: 64, concurrency: 640, agent: heavy, create: free }
  const [waited, ended] = [whole, cut].map((group) => simulatePool({ ...pool, group }))
  expect(ended?.completionMs.p90).toBeLessThan(0.5 * (waited?.completionMs.p90 ?? 0))
  expect(ended?.bias.lostShare).toBeGreaterThan(0.1)
  expect(ended?.bias.agentMsKept).toBeLessThan(ended?.bias.agentMsAll ?? 0)
  expect(ended?.bias.rewardKept).toBeGreaterThan(ended?.bias.rewardAll ?? 1)
  expect(ended?.stragglers?.timeShare).toBeGreaterThan(0)
  expect(waited?.bias).toMatchObject({ lostShare: 0 })
  expect(waited?.bias.rewardKept).toBeCloseTo(waited?.bias.rewardAll ?? 0)
})

test('results that lag too far are not taken', () => {
  const group = groupSpec.parse({ size: 2, maxLag: 0 })
  const trainer = { batch: 1, step: { kind: 'fixed', ms: 30_000 } } as const
  const found = simulatePool({ tasks: 60, concurrency: 40, agent: heavy, group, trainer })
  expect(found.lag).toMatchObject({ most: 0, mean: 0 })
  const loose = simulatePool({ tasks: 60, concurrency: 40, agent: heavy, trainer })
  expect(loose.lag?.mean).toBeGreaterThan(1)
})

test.each([
  { ahead: 16, maxLag: 1 },
  { ahead: 2, maxLag: null },
])('a trainer that waits has read all that there is: $ahead ahead, lag $maxLag', (given) => {
  const group = groupSpec.parse({ size: 4, maxLag: given.maxLag })
  const trainer = { batch: 8, step: { kind: 'fixed', ms: 10_000 } } as const
  const pool = { tasks: 100, concurrency: 64, agent: heavy, ahead: given.ahead }
  const { complete, failed } = simulatePool({ ...pool, group, trainer })
  expect(complete + failed).toBe(100)
})

test('a run of nothing is over at once', () => {
  const found = simulatePool({ tasks: 0, concurrency: 4, agent: minute })
  expect(found).toMatchObject({ episodes: 0, complete: 0, completionMs: { p90: 0 } })
})
