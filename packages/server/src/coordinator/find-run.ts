import { type RunView, runName } from '@sandlot/protocol'
import type { LiveRun } from './live-run.ts'
import { beingReadBack, unknownRun } from './refusals.ts'
import type { Registry } from './registry.ts'
import { RunStopped } from './run-actor.ts'
import { findRecord, type RunRecord } from './run-record.ts'
import type { CoordinatorServices } from './services.ts'
import { viewOf } from './views.ts'

/** A live run, or the record of one that is over. */
export interface FoundRun {
  readonly record: RunRecord
  readonly live: LiveRun | undefined
}

/** Throws `run_unknown`, also for what is no name of a run. */
export async function findRun(
  { engine }: CoordinatorServices,
  registry: Registry,
  project: string,
  name: string,
): Promise<FoundRun> {
  const live = registry.find(project, name)
  if (live) return { record: live.record, live }
  if (!runName.safeParse(name).success) throw unknownRun(JSON.stringify(name.slice(0, 64)))
  const stored = await findRecord(engine.kv, project, name)
  if (stored === undefined) throw unknownRun(name)
  if (stored.record.finished === null) throw beingReadBack(name)
  return { record: stored.record, live: undefined }
}

export function viewOfFound({ record, live }: FoundRun, nowMs: number): RunView {
  if (live) return viewOf(live, nowMs)
  if (record.finished === null) throw beingReadBack(record.name)
  return record.finished.view
}

/** Looks the run up again where it was let go of meanwhile: it is over then, or was read back. */
export async function onLive<T>(
  services: CoordinatorServices,
  registry: Registry,
  { project, name }: { readonly project: string; readonly name: string },
  work: (live: LiveRun | undefined, found: FoundRun) => Promise<T>,
): Promise<T> {
  for (;;) {
    const found = await findRun(services, registry, project, name)
    try {
      return await work(found.live, found)
    } catch (error) {
      if (!(error instanceof RunStopped)) throw error
      await registry.settled(project, name)
      if (registry.find(project, name) === found.live) throw beingReadBack(name)
    }
  }
}
