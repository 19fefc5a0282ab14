import type { Reconciled, ReconcileOptions } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { openNode } from '../testing/node.ts'
import { until } from '../testing/until.ts'
import { uncounted } from './numbers.ts'
import { keepReconciled } from './reconcile.ts'

const refused = { tell: async () => {} }
const NOTHING: Reconciled = { removed: [], stuck: [], dead: [], unwanted: [] }

test('looks at its own pace, says what it put right, and counts it', async () => {
  const clock = createManualClock()
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const counted: [string, number][] = []
  const answers = [
    NOTHING,
    { ...NOTHING, removed: ['cgroup /a', 'directory /b'], dead: ['host'] },
    new Error('no machine'),
    { ...NOTHING, stuck: ['mount /m'] },
  ]
  let looks = 0
  const reconcile = async () => {
    const answer = answers[looks++]
    if (answer instanceof Error) throw answer
    return answer ?? NOTHING
  }
  const numbers = {
    ...uncounted,
    reconciled: (what: keyof Reconciled, count: number) => void counted.push([what, count]),
  }
  const parts = {
    driver: { reconcile },
    pool: { holds: () => false },
    refused,
    clock,
    log,
    numbers,
  }
  {
    using _ = keepReconciled(parts, new Map())
    clock.advance(SERVER_LIMITS.reconcileEveryMs - 1)
    expect(looks).toBe(0)
    await until(() => {
      clock.advance(SERVER_LIMITS.reconcileEveryMs)
      return counted.length === 3
    })
  }
  expect(counted).toEqual([
    ['removed', 2],
    ['dead', 1],
    ['stuck', 1],
  ])
  expect(lines.map((line) => JSON.parse(line).found ?? JSON.parse(line).msg)).toEqual([
    ...['cgroup /a', 'directory /b', 'host'],
    ...['the machine could not be looked at', 'mount /m'],
  ])
  const before = looks
  clock.advance(10 * SERVER_LIMITS.reconcileEveryMs)
  expect(looks).toBe(before)
})

test('knows what has an owner and what waits in the pool, and nothing else', async () => {
  await using at = await openNode({ node: { pool: { min: 1, max: 1, idleMs: 600_000 } } })
  at.node.pool.fill()
  await at.node.acquire(at.request())
  await until(() => at.node.pool.numbers.ready === 1)
  const clock = createManualClock()
  const asked = Promise.withResolvers<ReconcileOptions>()
  const reconcile = async (options: ReconcileOptions) => {
    asked.resolve(options)
    return NOTHING
  }
  const parts = { driver: { reconcile }, pool: at.node.pool, refused, clock, numbers: uncounted }
  using _ = keepReconciled({ ...parts, log: pino({ level: 'silent' }) }, at.node.sandboxes.entries)
  clock.advance(SERVER_LIMITS.reconcileEveryMs)
  const { isWanted } = await asked.promise
  const all = at.driver.machine.all().map(({ hostId }) => hostId)
  expect(all).toHaveLength(2)
  expect(all.filter(isWanted)).toEqual(all)
  expect(isWanted('another')).toBe(false)
})
