/** The demo's closing figures, as one JSON object and as a table. */
import type { ResultRow } from 'sandlot'
import { formatTable } from '../output/table.ts'
import type { PolicyOutcome } from './run-policies.ts'

export interface Percentiles {
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export interface Summary {
  readonly episodes: number
  readonly perSecond: number
  readonly wallMs: number
  readonly policies: Record<
    string,
    { outcomes: Record<string, number>; flags: Record<string, number>; rewardMean: number | null }
  >
  readonly phases: Record<string, Percentiles>
  /** Sandboxes left. */
  readonly leaked: number
}

const PHASES = ['queued', 'create', 'agent', 'grade', 'teardown'] as const

export function summarize(
  outcomes: readonly PolicyOutcome[],
  wallMs: number,
  leaked: number,
): Summary {
  const rows = outcomes.flatMap((outcome) => outcome.rows)
  return {
    episodes: rows.length,
    perSecond: wallMs > 0 ? round((rows.length / wallMs) * 1000) : 0,
    wallMs: Math.round(wallMs),
    policies: Object.fromEntries(
      outcomes.map(({ policy, rows }) => [policy.name, policySummary(rows)]),
    ),
    phases: Object.fromEntries(
      PHASES.map((phase) => [phase, percentilesOf(rows.map((row) => row.phases[`${phase}Ms`]))]),
    ),
    leaked,
  }
}

export function formatSummary(summary: Summary): string {
  const policies = Object.entries(summary.policies).map(
    ([name, { outcomes, flags, rewardMean }]) => [
      name,
      counts(outcomes),
      counts(flags),
      rewardMean === null ? '-' : rewardMean.toFixed(3),
    ],
  )
  const phases = Object.entries(summary.phases).map(([name, { p50Ms, p95Ms, p99Ms }]) => [
    name,
    ...[p50Ms, p95Ms, p99Ms].map((ms) => ms.toFixed(ms < 10 ? 1 : 0)),
  ])
  return [
    formatTable(['policy', 'outcomes', 'flags', 'mean reward'], policies),
    '',
    formatTable(['phase', 'p50 ms', 'p95 ms', 'p99 ms'], phases),
    '',
    `${summary.episodes} episodes in ${(summary.wallMs / 1000).toFixed(1)} s, ${summary.perSecond} per second`,
    `${summary.leaked} sandboxes left`,
  ].join('\n')
}

function policySummary(rows: readonly ResultRow[]): Summary['policies'][string] {
  const outcomes: Record<string, number> = {}
  const flags: Record<string, number> = {}
  for (const row of rows) {
    outcomes[row.outcome] = (outcomes[row.outcome] ?? 0) + 1
    for (const flag of row.flags) flags[flag] = (flags[flag] ?? 0) + 1
  }
  const rewards = rows.flatMap((row) => (row.reward === null ? [] : [row.reward]))
  const sum = rewards.reduce((total, reward) => total + reward, 0)
  return { outcomes, flags, rewardMean: rewards.length === 0 ? null : round(sum / rewards.length) }
}

/** By nearest rank: each is a value that was measured. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0)
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

function counts(record: Record<string, number>): string {
  return Object.entries(record)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

function round(value: number): number {
  return Number(value.toFixed(3))
}
