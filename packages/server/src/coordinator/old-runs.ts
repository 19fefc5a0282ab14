import type { Engine } from '@sandlot/engine'
import { allRecords, type RunRecord } from './run-record.ts'

export interface Age {
  readonly nowMs: number
  /** Of runs that say nothing themselves; undefined: they stay. */
  readonly retainMs: number | undefined
}

/** Runs that are over for longer than they are to be kept, so many at the most. */
export async function oldRuns(
  kv: Engine['kv'],
  age: Age,
  max: number,
): Promise<readonly Pick<RunRecord, 'project' | 'name'>[]> {
  const old: Pick<RunRecord, 'project' | 'name'>[] = []
  for await (const { record } of allRecords(kv)) {
    if (old.length === max) break
    const { project, name } = record
    if (isOld(record, age)) old.push({ project, name })
  }
  return old
}

function isOld({ finished, specification }: RunRecord, { nowMs, retainMs }: Age): boolean {
  const keptMs = specification.retainMs ?? retainMs
  const endedAtMs = finished?.view.finishedAtMs
  return keptMs !== undefined && endedAtMs !== undefined && endedAtMs + keptMs <= nowMs
}
