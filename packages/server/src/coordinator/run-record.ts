import { type Engine, isEngineError, type Revision } from '@sandlot/engine'
import type { RunReport, RunView } from '@sandlot/protocol'
import type { Specification } from './specification.ts'
import { ALL_RECORDS, recordKey } from './streams.ts'

/** That a run exists, and what it is. Written when it begins and when it is over; all between lies in its logs. */
export interface RunRecord {
  readonly schema: 1
  readonly id: string
  readonly project: string
  readonly name: string
  readonly digest: string
  readonly createdAtMs: number
  readonly specification: Specification
  /** Set once the run is over and every result is durable: from then on its logs of events and tasks are not read again. */
  readonly finished: { readonly view: RunView; readonly report: RunReport } | null
}

export interface StoredRecord {
  readonly record: RunRecord
  readonly revision: Revision
}

export async function findRecord(
  kv: Engine['kv'],
  project: string,
  name: string,
): Promise<StoredRecord | undefined> {
  const entry = await kv.get(recordKey(project, name))
  return entry && { record: parse(entry.value), revision: entry.revision }
}

/** Undefined where somebody else was faster: look again. */
export async function saveRecord(
  kv: Engine['kv'],
  record: RunRecord,
  expect: Revision | 'absent',
): Promise<Revision | undefined> {
  try {
    const value = Buffer.from(JSON.stringify(record))
    return (await kv.put(recordKey(record.project, record.name), value, { expect })).revision
  } catch (error) {
    if (isEngineError(error, 'kv_conflict')) return undefined
    throw error
  }
}

/**
 * A run that is over has groups that nobody has read yet, and the policy goes on: which of them are too old is told by its version.
 * Undefined where there is no such record any more.
 */
export async function saveVersion(
  kv: Engine['kv'],
  { project, name }: Pick<RunRecord, 'project' | 'name'>,
  policyVersion: number,
): Promise<RunView | undefined> {
  for (;;) {
    const stored = await findRecord(kv, project, name)
    const finished = stored?.record.finished
    if (!stored || !finished) return undefined
    const view = { ...finished.view, policyVersion }
    const record = { ...stored.record, finished: { ...finished, view } }
    if (await saveRecord(kv, record, stored.revision)) return view
  }
}

/** All records below a prefix, a page at a time. */
export async function* allRecords(
  kv: Engine['kv'],
  prefix = ALL_RECORDS,
  after?: string,
): AsyncGenerator<StoredRecord> {
  let cursor = after
  for (;;) {
    const page = await kv.list(prefix, cursor === undefined ? {} : { after: cursor })
    for (const { value, revision } of page.entries) yield { record: parse(value), revision }
    if (page.next === undefined) return
    cursor = page.next
  }
}

function parse(value: Uint8Array): RunRecord {
  return JSON.parse(Buffer.from(value).toString()) as RunRecord
}
