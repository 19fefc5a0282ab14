import { describe, expect, test } from 'vitest'
import { Demand } from './demand.ts'

const SETTINGS = { min: 4, idleMs: 600_000, burstMs: 2_000, expectMs: 60_000 }

function takes(demand: Demand, count: number, nowMs: number): void {
  for (let n = 0; n < count; n++) demand.taken(nowMs)
}

describe('the demand for waiting sandboxes', () => {
  test('is the least at first, and nothing after an idle time', () => {
    const demand = new Demand(SETTINGS, 0)
    expect(demand.wanted(599_999)).toBe(4)
    expect(demand.wanted(600_000)).toBe(0)
    demand.taken(700_000)
    expect(demand.wanted(700_000)).toBe(4)
    demand.touch(800_000)
    expect(demand.wanted(1_399_999)).toBe(4)
    expect(demand.wanted(1_400_000)).toBe(0)
  })

  test('is as many as were taken in one burst, as long as that is remembered', () => {
    const demand = new Demand(SETTINGS, 0)
    takes(demand, 30, 1_000)
    takes(demand, 20, 2_999)
    expect(demand.wanted(3_000)).toBe(50)
    for (let n = 0; n < 50; n++) demand.filled()
    takes(demand, 10, 400_000)
    expect(demand.wanted(602_998)).toBe(50)
    expect(demand.wanted(602_999)).toBe(10)
    expect(demand.wanted(1_000_000)).toBe(0)
  })

  test('does not grow by what is made up for at once, however much that is', () => {
    const demand = new Demand(SETTINGS, 0)
    for (let nowMs = 0; nowMs < 100_000; nowMs += 50) {
      demand.taken(nowMs)
      demand.filled()
    }
    expect(demand.wanted(100_000)).toBe(4)
    // Nor by single ones that nobody makes up for.
    for (let nowMs = 100_000; nowMs < 200_000; nowMs += 1_500) demand.taken(nowMs)
    expect(demand.wanted(200_000)).toBe(4)
  })

  test('is what was announced, until that many have come or it is past', () => {
    const demand = new Demand({ ...SETTINGS, min: 0 }, 0)
    demand.expect('run', 20, 0)
    demand.expect('run', 16, 0)
    demand.expect('other', 8, 30_000)
    expect(demand.wanted(30_000)).toBe(24)
    takes(demand, 3, 31_000)
    for (let n = 0; n < 3; n++) demand.filled()
    expect(demand.wanted(31_000)).toBe(21)
    expect(demand.wanted(60_000)).toBe(8)
    demand.expect('other', 0, 61_000)
    // What the three took together.
    expect(demand.wanted(61_000)).toBe(3)
    demand.expect('late', 2, 61_000)
    takes(demand, 1, 70_000)
    expect(demand.wanted(700_000)).toBe(0)
  })
})
