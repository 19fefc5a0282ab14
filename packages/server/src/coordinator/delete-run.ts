import { SandlotError } from '@sandlot/protocol'
import { isSnapshotOf } from './ids.ts'
import { unknownRun } from './refusals.ts'
import type { Registry } from './registry.ts'
import { findRecord } from './run-record.ts'
import { dropRun } from './run-streams.ts'
import type { CoordinatorServices } from './services.ts'
import { recordKey } from './streams.ts'

/** Removes a finished run with its results. Calls for one name come one after another. */
export async function deleteRun(
  { engine, keeper }: CoordinatorServices,
  registry: Registry,
  project: string,
  name: string,
): Promise<void> {
  await registry.settled(project, name)
  const stored = await findRecord(engine.kv, project, name)
  if (stored === undefined) throw unknownRun(name)
  if (stored.record.finished === null) {
    throw new SandlotError('run_exists', `the run ${name} is not finished`, {
      hint: 'Cancel it first, and wait until it is finished.',
    })
  }
  await engine.kv.delete(recordKey(project, name), { expect: stored.revision })
  await dropRun(engine, stored.record)
  await keeper.forget(project, (snapshot) => isSnapshotOf(stored.record.id, snapshot))
}
