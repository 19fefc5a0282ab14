/** `sandlot simulate`: how large a pool has to be, in simulated time, before it is rented. */
import { type PoolFigures, simulatePool } from '@sandlot/core/sizing'
import { formatDuration } from '@sandlot/protocol'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { type PoolWords, poolOf } from './pool-words.ts'

export interface SimulateOptions extends PoolWords {
  readonly concurrency: readonly number[]
  readonly json?: boolean
}

export function simulateCommand({ json, ...words }: SimulateOptions): void {
  const pool = poolOf(words)
  const asked = [...new Set(words.concurrency)].sort((a, b) => a - b)
  const found = asked.map((concurrency) => simulatePool({ ...pool, concurrency }))
  const balance = balanceOf(found)
  const checked =
    balance === null || asked.includes(balance)
      ? []
      : [simulatePool({ ...pool, concurrency: balance })]
  const all = [...found, ...checked].sort((a, b) => a.concurrency - b.concurrency)
  if (json) {
    printJson({ seed: pool.seed, pools: all, balance })
    return
  }
  printLine(describePools(all, balance))
  note(`seed ${pool.seed}; the same options give the same again`)
}

/** Little's law, from the pool in which the trainer and the episodes were closest to it. */
export function balanceOf(found: readonly PoolFigures[]): number | null {
  const told = found.filter(({ balance }) => balance.concurrency !== null)
  const nearest = told.toSorted((a, b) => distance(a) - distance(b))[0]
  return nearest?.balance.concurrency ?? null
}

function distance({ concurrency, balance }: PoolFigures): number {
  return Math.abs(Math.log((balance.concurrency ?? concurrency) / concurrency))
}

export function describePools(pools: readonly PoolFigures[], balance: number | null): string {
  const [first] = pools
  const trained = first?.batchMs != null
  const grouped = first?.stragglers != null
  const headings = [
    ...['SLOTS', 'ALL DONE', '90 % DONE'],
    ...(trained ? ['BATCH P50', 'BATCH P90', 'TRAINER WAITS'] : []),
    ...['SLOTS IDLE', 'IN THE MODEL'],
    ...(grouped ? ['STRAGGLERS', 'THEIR TIME'] : []),
    ...(trained ? ['LAG', 'MOST'] : []),
    'LIMITED BY',
  ]
  const rows = pools.map((pool) => [
    `${pool.concurrency}${pool.concurrency === balance ? ' *' : ''}`,
    formatDuration(pool.elapsedMs),
    formatDuration(pool.completionMs.p90),
    ...(trained ? batchOf(pool) : []),
    percent(pool.idleShare),
    percent(pool.modelShare),
    ...(grouped
      ? [percent(pool.stragglers?.share ?? 0), percent(pool.stragglers?.timeShare ?? 0)]
      : []),
    ...(trained ? [(pool.lag?.mean ?? 0).toFixed(1), String(pool.lag?.most ?? 0)] : []),
    longestOf(pool),
  ])
  const parts = [formatTable(headings, rows), describeBalance(pools, balance)]
  const biased = pools.filter(({ bias }) => bias.lostShare > 0)
  if (biased.length > 0) parts.push(describeBias(biased))
  return parts.join('\n\n')
}

function batchOf({ batchMs, trainerWaitShare }: PoolFigures): string[] {
  const { p50 = 0, p90 = 0 } = batchMs ?? {}
  return [formatDuration(p50), formatDuration(p90), percent(trainerWaitShare ?? 0)]
}

function longestOf({ limitedMs }: PoolFigures): string {
  const [longest] = Object.entries(limitedMs).sort(([, a], [, b]) => b - a)
  return longest?.[0] ?? '-'
}

function describeBalance(pools: readonly PoolFigures[], balance: number | null): string {
  const found = pools.find((pool) => pool.balance.concurrency === balance) ?? pools.at(-1)
  const why = found?.balance.why ?? ''
  if (balance === null && found?.batchMs === null)
    return 'no balance: there is no trainer to be in balance with; say what a step of it takes with --trainer-step'
  if (balance === null) return `no balance: ${why}`
  return `* balance: about ${balance} slots; ${why}`
}

/** What a trainer learns from differs from what the policy does, where not every member is waited for. */
function describeBias(pools: readonly PoolFigures[]): string {
  const rows = pools.map(({ concurrency, bias }) => [
    String(concurrency),
    percent(bias.lostShare),
    `${bias.rewardAll.toFixed(3)} → ${bias.rewardKept.toFixed(3)}`,
    `${formatDuration(bias.agentMsAll)} → ${formatDuration(bias.agentMsKept)}`,
  ])
  return formatTable(
    ['SLOTS', 'RESULTS LOST', 'MEAN REWARD, ALL → KEPT', 'MEAN TIME, ALL → KEPT'],
    rows,
  )
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
