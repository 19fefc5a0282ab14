import { newId, SandlotError } from '@sandlot/protocol'
import { isSnapshotOf } from './ids.ts'
import type { CreatedRun, RunRequest } from './port.ts'
import { refuseNever } from './refuse-never.ts'
import type { Registry } from './registry.ts'
import { differencesOf, fieldsOf, sayDifferences } from './run-differences.ts'
import { findRecord, type RunRecord, type StoredRecord, saveRecord } from './run-record.ts'
import { dropRun } from './run-streams.ts'
import type { CoordinatorServices } from './services.ts'
import { completeSpecification, digestOf, policyOf } from './specification.ts'
import { pinBlob } from './task-store.ts'
import { viewOf } from './views.ts'

/** Starts a run, or attaches to the one of the same name. Calls for one name come one after another. */
export async function createRun(
  services: CoordinatorServices,
  registry: Registry,
  project: string,
  request: RunRequest,
): Promise<CreatedRun> {
  const { engine } = services
  const wanted = await wantedRecord(services, project, request)
  await registry.settled(project, request.name)
  const stored = await findRecord(engine.kv, project, request.name)
  if (stored === undefined) return await begin(services, registry, wanted)
  if (stored.record.finished !== null && request.ifExists === 'replace') {
    const created = await begin(services, registry, wanted, stored)
    await dropRun(engine, stored.record)
    await services.keeper.forget(project, (snapshot) => isSnapshotOf(stored.record.id, snapshot))
    return created
  }
  if (stored.record.digest !== wanted.digest) throw differs(stored.record, wanted)
  if (stored.record.finished === null) {
    const live = registry.find(project, request.name) ?? (await registry.open(stored))
    return { run: viewOf(live, services.clock.now()), attached: true }
  }
  if (request.ifExists !== 'attach') {
    throw new SandlotError('run_exists', `a run named ${request.name} is finished already`)
  }
  return { run: stored.record.finished.view, attached: true }
}

async function wantedRecord(
  services: CoordinatorServices,
  project: string,
  request: RunRequest,
): Promise<RunRecord> {
  const { clock, imageDigest, functions } = services
  if (request.function && !functions) {
    throw new SandlotError('unsupported', 'this coordinator runs no functions')
  }
  const digest = await imageDigest(request.from)
  if (digest === undefined) throw noImage(request.from)
  const { functionImage = null } = request
  if (functionImage !== null && !(await imageDigest(functionImage))) throw noImage(functionImage)
  const specification = completeSpecification(request, digest)
  await refuseNever(services, specification.resources)
  const id = newId('run')
  policyOf({ id, specification })
  return {
    ...{ schema: 1, id, project, name: request.name, specification },
    digest: digestOf(specification),
    createdAtMs: clock.now(),
    finished: null,
  }
}

async function begin(
  services: CoordinatorServices,
  registry: Registry,
  record: RunRecord,
  replaced?: StoredRecord,
): Promise<CreatedRun> {
  const { engine } = services
  const { grade, program, function: runs } = record.specification
  const graders = grade?.kind === 'command' ? grade.files : undefined
  const files = [...(graders ?? []), ...(program?.files ?? [])]
  const blobs = [...files.map(({ blob }) => blob), ...(runs ? [runs.bundle] : [])]
  for (const blob of new Set(blobs)) await pinBlob(engine, record, blob)
  registry.assertRoom()
  const revision = await saveRecord(engine.kv, record, replaced?.revision ?? 'absent')
  if (revision === undefined) {
    throw new SandlotError('internal', `another coordinator has just created ${record.name}`)
  }
  const live = await registry.open({ record, revision })
  return { run: viewOf(live, services.clock.now()), attached: false }
}

function differs(existing: RunRecord, wanted: RunRecord): SandlotError {
  const differences = differencesOf(existing.specification, wanted.specification)
  const hint =
    existing.finished === null
      ? 'The run goes on: take another name, or cancel it first.'
      : "Take another name, or say ifExists: 'replace' to run it again."
  return new SandlotError(
    'run_differs',
    `the run ${wanted.name} exists with other options; ${sayDifferences(differences)}`,
    { hint, details: { fields: fieldsOf(differences) } },
  )
}

function noImage(image: string): SandlotError {
  return new SandlotError('image_unknown', `there is no image ${image}`)
}
