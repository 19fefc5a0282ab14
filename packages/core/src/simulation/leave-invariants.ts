import type { UnrecordedRow } from '../run/effect.ts'
import type { Run } from '../run/run.ts'
import { must } from './invariants.ts'

/** After every step. */
export function checkKept({ kept, policy }: Run): void {
  must(kept >= 0 && kept <= (policy.keep?.max ?? 0), 'no more is kept than may be', () => kept)
}

/** When all is over. */
export function checkLeft(run: Run, rows: readonly { readonly row: UnrecordedRow }[]): void {
  const { keep, collects } = run.policy
  const kept = rows.filter(({ row }) => row.kept !== null)
  must(kept.length <= run.kept, 'what is kept is counted', () => [kept.length, run.kept])
  for (const { row } of kept) {
    must(
      keep?.of === 'all' || row.outcome !== 'graded',
      'of good episodes nothing is kept unless it is asked for',
      () => row,
    )
    must(!row.outcome.startsWith('cancelled'), 'nothing is kept of what nobody wanted', () => row)
    must(row.kept === `sn_${row.sandbox}`, 'what is kept is of the sandbox of its row', () => row)
  }
  for (const { row } of rows) {
    const collected = row.artifacts.some(({ name }) => name === COLLECTED)
    must(!collected || collects, 'nothing is collected unless it is asked for', () => row)
  }
}

/** Name of the file that each fake sandbox has. */
export const COLLECTED = '/collected'
