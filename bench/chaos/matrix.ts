/** Truth against what was reported, and what must never be. */
import type { ResultRow } from '@sandlot/protocol'
import { type ChaosTask, truthOf } from './behaviours.ts'
import { INFRA_RETRIES } from './work.ts'

type Row = Pick<ResultRow, 'key' | 'outcome' | 'reward' | 'valid' | 'error' | 'attempts'>

export interface Verdicts {
  /** How often a truth was reported as what. */
  readonly matrix: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Rows that say something else than the truth, a line each. */
  readonly wrong: readonly string[]
  /** Zeros of episodes that did not earn one. */
  readonly fabricated: readonly string[]
  readonly lost: readonly string[]
  readonly doubled: readonly string[]
}

/** `killed`: sandboxes that were killed from outside. */
export function verdictsOf(
  tasks: readonly ChaosTask[],
  rows: readonly Row[],
  killed: ReadonlySet<string>,
): Verdicts {
  const matrix = new Map<string, Map<string, number>>()
  const wrong: string[] = []
  const fabricated: string[] = []
  const byKey = Map.groupBy(rows, ({ key }) => key)
  for (const task of tasks) {
    for (const row of byKey.get(task.id) ?? []) {
      const truth = lostTruth(row, killed) ?? truthOf(task)
      const reported = told(row)
      const line = matrix.get(truth) ?? new Map<string, number>()
      matrix.set(truth, line.set(reported, (line.get(reported) ?? 0) + 1))
      const shown = `${task.id} ${task.does}: ${truth}, reported ${reported}: ${row.error}`
      if (reported !== truth) wrong.push(shown)
      if (row.reward === 0 && !truth.endsWith(' 0')) fabricated.push(shown)
    }
  }
  const known = new Set(tasks.map(({ id }) => id))
  return {
    matrix,
    wrong: [
      ...wrong,
      ...rows.filter(({ key }) => !known.has(key)).map(({ key }) => `${key} is nobody's`),
    ],
    fabricated,
    lost: tasks.filter(({ id }) => !byKey.has(id)).map(({ id }) => id),
    doubled: [...byKey].filter(([, each]) => each.length > 1).map(([key]) => key),
  }
}

/** Outcomes of an attempt that lost its sandbox: in the agent's part, and while it was graded. */
const LOSSES: readonly (string | null)[] = ['infra_lost', 'grade_error']

/**
 * Of one whose tries were ended from outside until none was left that is the truth, whatever it does: no reward, for what its last try
 * was lost in. Undefined where it had another one.
 */
function lostTruth({ attempts }: Row, killed: ReadonlySet<string>): string | undefined {
  const ended = attempts.filter(
    ({ outcome, sandbox }) => LOSSES.includes(outcome) && killed.has(sandbox ?? ''),
  )
  const last = attempts.at(-1)
  if (!last || last !== ended.at(-1) || ended.length <= INFRA_RETRIES) return undefined
  return `${last.outcome} null`
}

/** `graded 1`. */
export function told({ outcome, reward }: Pick<ResultRow, 'outcome' | 'reward'>): string {
  return `${outcome} ${reward}`
}

/** Lines of a table: a row for each truth, a column for each report. */
export function describeMatrix({ matrix }: Verdicts): readonly string[] {
  const truths = [...matrix.keys()].sort()
  const reports = new Set([...truths, ...[...matrix.values()].flatMap((line) => [...line.keys()])])
  const columns = [...reports].sort()
  const first = Math.max('truth'.length, ...truths.map(({ length }) => length))
  const line = (head: string, cells: readonly string[]) =>
    [head.padEnd(first), ...cells.map((cell, at) => cell.padStart(columns[at]?.length ?? 0))].join(
      '  ',
    )
  return [
    line('truth', columns),
    ...truths.map((truth) =>
      line(
        truth,
        columns.map((report) => String(matrix.get(truth)?.get(report) ?? '·')),
      ),
    ),
  ]
}
