import { formatDuration } from '@sandlot/protocol'
import type { RunReport, RunView } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { formatMicros } from './money.ts'
import { describeSaturation } from './saturation.ts'

/** What `sandlot runs show` prints. The words are those of the guide. */
export function describeReport(report: RunReport): string {
  const { run, elapsedMs, perSecond, rewardMean, attempts, retries, groups, hedges } = report
  const { causes = [], longest = [], phases, cost } = report
  const facts = [
    ['run', run.name],
    ['state', run.reason ? `${run.state}: ${run.reason}` : run.state],
    [
      'episodes',
      `${run.counts.done} of ${run.counts.tasks} done, ${run.counts.running + run.counts.grading} in flight`,
    ],
    ['outcomes', describeCounts(run.outcomes) || '-'],
    ...(groups ? describeGroups(groups) : []),
    ['flags', describeCounts(run.flags) || '-'],
    ['mean reward (valid)', rewardMean === null ? '-' : rewardMean.toFixed(3)],
    ['elapsed', formatDuration(elapsedMs)],
    ['throughput', `${perSecond.toFixed(2)} per second`],
    ...describeSaturation(report),
    ...(cost ? [['cost', describeCost(cost)]] : []),
    ['attempts', `${attempts}, of which ${retries} tried an episode again`],
    ...(hedges ? [['hedged', `${hedges.started}, of which ${hedges.won} were first`]] : []),
  ]
  const rows = Object.entries(phases)
    // Which no episode had, such as a set-up where there is none.
    .filter(([, { p99Ms }]) => p99Ms > 0)
    .map(([phase, { count, p50Ms, p95Ms, p99Ms }]) => [
      phase,
      String(count),
      ...[p50Ms, p95Ms, p99Ms].map((ms) => ms.toFixed(1)),
    ])
  const tables = [
    formatTable(['', ''], facts).trimStart(),
    ...describeLongest(longest),
    ...describeCauses(causes),
    ...(rows.length === 0
      ? []
      : [formatTable(['PHASE', 'COUNT', 'P50 MS', 'P95 MS', 'P99 MS'], rows)]),
  ]
  return tables.join('\n\n')
}

function describeCost({ micros, retriesMicros, currency }: NonNullable<RunReport['cost']>): string {
  const retries = `${formatMicros(retriesMicros, currency)} for attempts that were not the first`
  return `${formatMicros(micros, currency)}, of it ${retries}`
}

/** `3 of 8 complete, 1 failed`. */
export function describeGroupCounts(groups: NonNullable<RunView['groups']>): string {
  const { open, complete, failed } = groups
  return `${complete} of ${open + complete + failed} complete, ${failed} failed`
}

function describeGroups(groups: NonNullable<RunReport['groups']>): string[][] {
  const { episodes, share, timeShare } = groups.stragglers
  return [
    ['groups', describeGroupCounts(groups)],
    ['ended by', describeCounts(groups.reasons) || '-'],
    [
      'stragglers',
      episodes === 0
        ? '-'
        : `${episodes} not waited for: ${percent(share)} of the members, ${percent(timeShare)} of their time`,
    ],
  ]
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

/** `graded 3, infra_lost 1`. */
export function describeCounts(counts: Partial<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

/** Where to look when nothing ends. */
function describeLongest(longest: readonly Longest[]): string[] {
  if (longest.length === 0) return []
  const rows = longest.map((each) => [
    each.key.slice(0, KEY_SHOWN),
    since(each.sinceMs),
    `${each.phase} for ${since(each.phaseSinceMs)}`,
    [each.waits, silenceOf(each)].filter(Boolean).join('; ') || '-',
  ])
  const more = `\`sandlot episode ${longest[0]?.episode}\` tells what runs in the first`
  return [`${formatTable(['LONGEST', 'FOR', 'PHASE', 'WAITS FOR'], rows)}\n${more}`]
}

/** `t1 for 3m (grading)`: the oldest, on the live line. */
export function describeLong({ key, sinceMs, phase, heardMs }: Longest): string {
  const silent = heardMs !== null && Date.now() - heardMs > SILENT_MS ? ', its worker silent' : ''
  return `longest: ${key.slice(0, KEY_SHOWN)} for ${since(sinceMs)} (${phase}${silent})`
}

/** A worker that is well is heard far more often. */
function silenceOf({ heardMs }: Longest): string | undefined {
  if (heardMs === null || Date.now() - heardMs < SILENT_MS) return undefined
  return `its worker was not heard for ${since(heardMs)}: its event loop may stand still`
}

function since(atMs: number): string {
  return formatDuration(Math.max(0, Math.round(Date.now() - atMs)))
}

type Longest = NonNullable<RunReport['longest']>[number]

const SILENT_MS = 30_000

/** Why episodes ended as they did, by outcome; then why they were tried again. */
function describeCauses(causes: RunReport['causes']): string[] {
  const tableOf = (retried: boolean, heading: string) => {
    const rows = causes
      .filter((each) => each.retried === retried)
      .sort((a, b) => (a.outcome ?? '').localeCompare(b.outcome ?? '') || b.count - a.count)
      .map(({ outcome, count, example, cause }) => [
        outcome ?? 'given up',
        String(count),
        example.slice(0, KEY_SHOWN),
        cause.slice(0, CAUSE_SHOWN),
      ])
    return rows.length === 0 ? [] : [formatTable([heading, 'COUNT', 'FOR EXAMPLE', 'WHY'], rows)]
  }
  return [...tableOf(false, 'OUTCOME'), ...tableOf(true, 'TRIED AGAIN')]
}

const KEY_SHOWN = 40
const CAUSE_SHOWN = 160
