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
      const truth = wasKilled(row, killed) ? LOST : truthOf(task)
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

const LOST = 'infra_lost null'

/** Of one whose every try was ended from outside, until none was left, that is the truth, whatever it does. */
function wasKilled({ attempts }: Row, killed: ReadonlySet<string>): boolean {
  const lost = attempts.filter(({ outcome }) => outcome === 'infra_lost')
  return lost.length > INFRA_RETRIES && lost.every(({ sandbox }) => killed.has(sandbox ?? ''))
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
