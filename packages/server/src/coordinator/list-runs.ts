import { LIMITS, type RunView } from '@sandlot/protocol'
import type { ListRuns, RunPage } from './port.ts'
import type { Registry } from './registry.ts'
import { allRecords, type RunRecord } from './run-record.ts'
import type { CoordinatorServices } from './services.ts'
import { recordKey, recordPrefix } from './streams.ts'
import { viewOf } from './views.ts'

const ITEMS_DEFAULT = 100

export async function listRuns(
  { engine, clock }: CoordinatorServices,
  registry: Registry,
  project: string,
  query: ListRuns,
): Promise<RunPage> {
  const limit = Math.min(query.limit ?? ITEMS_DEFAULT, LIMITS.itemsPerPage)
  const after = query.after ? recordKey(project, query.after) : undefined
  const items: RunView[] = []
  for await (const { record } of allRecords(engine.kv, recordPrefix(project), after)) {
    const view = viewNow(registry, record, clock.now())
    if (view === undefined || (query.state !== undefined && view.state !== query.state)) continue
    if (items.length === limit) return { items, next: items.at(-1)?.name ?? null }
    items.push(view)
  }
  return { items, next: null }
}

/** Undefined while the run is being read back: it is listed again in a moment. */
function viewNow(registry: Registry, record: RunRecord, nowMs: number): RunView | undefined {
  const live = registry.find(record.project, record.name)
  return live ? viewOf(live, nowMs) : record.finished?.view
}
