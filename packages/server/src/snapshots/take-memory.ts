import { newId, SandlotError, type SnapshotCreate } from '@sandlot/protocol'
import type { Entry } from '../node/entry.ts'
import type { Lent } from '../node/lend.ts'
import { checkpointable } from '../node/memory.ts'
import { BUILD } from '../node/owners.ts'
import type { OwnershipRecord } from '../node/ownership.ts'
import type { SnapshotRecord } from './record.ts'
import { type SnapshotServices, takeFiles } from './take.ts'

export interface MemoryTaking {
  readonly project: string
  readonly lent: Lent
  readonly body: SnapshotCreate
  readonly id?: string
  /** How long its trial may wait for room. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

/**
 * Saves the memory of a running sandbox, and its files besides, which a cold start has; the sandbox goes on. It is offered once a trial
 * has come up from it. What fails leaves nothing.
 * @throws SandlotError `unsupported` where the sandbox was not made for it, `snapshot_failed`, `on_restore_failed`, `disk_full`, `capacity`
 */
export async function takeMemory(
  services: SnapshotServices,
  taking: MemoryTaking,
): Promise<SnapshotRecord> {
  const { project, lent, body, id = newId('snapshot') } = taking
  const { node, snapshots } = services
  const found = snapshots.find(project, id)
  if (found) return found
  if (body.exclude && body.exclude.length > 0) throw notExcluded()
  const entry = node.sandboxes.entries.get(lent.id)
  if (!entry) throw new SandlotError('sandbox_gone', `the sandbox ${lent.id} has ended`)
  checkpointable(entry)
  const checkpoint = newId('snapshot')
  let taken: SnapshotRecord | undefined
  try {
    taken = await snapshots.whileMaking(() => take(services, entry, { ...taking, id, checkpoint }))
    return taken
  } catch (error) {
    throw await lent.explain(error)
  } finally {
    // Also where the same was asked for twice, and the other one was faster.
    if (taken?.memory?.checkpoint !== checkpoint) await node.sandboxes.memory.drop(checkpoint)
  }
}

interface Try extends MemoryTaking {
  readonly id: string
  /** Name of what it saves. */
  readonly checkpoint: string
}

async function take(
  services: SnapshotServices,
  entry: Entry,
  taking: Try,
): Promise<SnapshotRecord> {
  const { node, snapshots, now } = services
  const { project, lent, body, id, checkpoint, signal } = taking
  const { name, tags = {}, hidden, onRestore } = body
  const { image, from, sizeBytes, warnings } = await takeFiles(services, lent, [], signal)
  const saved = await node.sandboxes.memory.save(entry, checkpoint)
  const { image: below, resources, env, workdir, user } = entry.record
  await tryOut(services, entry.record, taking)
  const { runtime, cpuFeatures } = saved
  const faster = snapshots.find(project, id)
  if (faster) return faster
  return await snapshots.add({
    id,
    project,
    kind: 'memory',
    ...(name === undefined ? {} : { name }),
    tags,
    image: image.id,
    parent: from,
    sandbox: lent.id,
    sizeBytes: sizeBytes + saved.sizeBytes,
    createdAtMs: now(),
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(hidden ? { hidden } : {}),
    memory: {
      ...{ checkpoint, below, resources, runtime, cpuFeatures, env, workdir, user },
      ...(onRestore ? { onRestore } : {}),
    },
  })
}

/** Starts one copy from it, asks it for a sign of life, and ends it. */
async function tryOut(
  { node }: SnapshotServices,
  { image, resources, env, workdir, user, network }: OwnershipRecord,
  { checkpoint, waitMs, signal, body: { onRestore } }: Try,
): Promise<void> {
  const sandbox = newId('sandbox')
  const who = { project: '', owner: BUILD, epoch: 0 }
  try {
    const like = { image, resources, env, workdir, user, network }
    const from = { checkpoint, ...(onRestore ? { onRestore } : {}) }
    await node.acquire({ sandbox, ...like, ...who, ...from, waitMs }, { signal })
    using lent = await node.sandboxes.lend(sandbox, { signal })
    await lent.guest.exec.list({ signal })
  } catch (error) {
    throw untried(error)
  } finally {
    await node.release({ sandbox, reason: 'its trial is over' })
  }
}

function untried(error: unknown): unknown {
  if (!(error instanceof SandlotError)) return error
  if (error.code === 'capacity') {
    return new SandlotError('capacity', `there is no room to try the snapshot: ${error.message}`, {
      hint: 'Each memory snapshot is tried by a sandbox of the same resources before it is offered: end one, or try again later.',
      cause: error,
    })
  }
  const broken = error.code === 'create_failed' || error.code === 'snapshot_incompatible'
  if (!broken) return error
  return new SandlotError(
    'snapshot_failed',
    `nothing comes up from the snapshot, so it is not kept: ${error.message}`,
    { cause: error },
  )
}

function notExcluded(): SandlotError {
  return new SandlotError('invalid_request', 'body.exclude: memory is saved as a whole', {
    hint: "Leave exclude out, or save the files alone: kind 'filesystem', on the command line without --memory.",
  })
}
