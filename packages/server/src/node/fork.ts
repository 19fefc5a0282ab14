import { KEEP_WARM_DEFAULT_MS, newId, type RestoreCommand, type Tags } from '@sandlot/protocol'
import type { Entry } from './entry.ts'
import { checkpointable } from './memory.ts'
import { CLIENT, isAttempt } from './owners.ts'
import type { AcquireRequest } from './port.ts'
import type { NodeParts, NodeSandboxes } from './sandboxes.ts'

/** One copy, or why there is none. */
export type Forked = { readonly entry: Entry } | { readonly error: unknown }

/** The ids that they get, chosen by the caller; without tags they have the original's. */
export interface Copies {
  readonly ids: readonly string[]
  readonly tags?: Tags | undefined
  /** Runs in each that begins with its memory. */
  readonly onRestore?: RestoreCommand | undefined
}

/**
 * Copies of a running sandbox, each as if it had been it; the original goes on. The first copy to come up proves what was saved; a copy
 * that fails costs no other.
 */
export async function forkMemory(
  { checkpoints }: Pick<NodeParts, 'checkpoints'>,
  sandboxes: NodeSandboxes,
  original: Entry,
  copies: Copies,
): Promise<Forked[]> {
  if (original.busy) await original.busy
  checkpointable(original)
  const name = newId('snapshot').replace('sn_', 'fork-')
  try {
    await sandboxes.memory.save(original, name)
    const { onRestore } = copies
    const from = { checkpoint: name, ...(onRestore ? { onRestore } : {}) }
    return await startCopies(sandboxes, original, copies, from)
  } finally {
    await checkpoints.remove(name).catch(() => {})
  }
}

/** Starts them side by side, from what was saved of the original: its memory, or an image of its files. */
export async function startCopies(
  sandboxes: NodeSandboxes,
  original: Entry,
  copies: Copies,
  from: Pick<AcquireRequest, 'checkpoint' | 'onRestore'> | Pick<AcquireRequest, 'image'>,
): Promise<Forked[]> {
  const starting = copies.ids.map((id) =>
    sandboxes.acquire({ ...copyOf(original, id, copies.tags), ...from }).then(
      (entry) => ({ entry }),
      (error: unknown) => ({ error }),
    ),
  )
  return await Promise.all(starting)
}

function copyOf({ record }: Entry, id: string, tags: Tags | undefined): AcquireRequest {
  const { sandbox, project, owner, epoch, image, resources, env, workdir, user, network, phase } =
    record
  return {
    sandbox: id,
    parent: sandbox,
    tags: tags ?? record.tags,
    ...{ project, owner, epoch, image, resources, env, workdir, user, network, phase },
    ...(record.secrets ? { secrets: record.secrets } : {}),
    ...(record.keepWarmMs === null ? {} : { keepWarmMs: record.keepWarmMs }),
    ...(record.lifetimeMs === null ? {} : { lifetimeMs: record.lifetimeMs }),
    // The attempt knows nothing of it: it would outlive it for good.
    ...(isAttempt(owner) ? { owner: CLIENT, epoch: 0, keepWarmMs: KEEP_WARM_DEFAULT_MS } : {}),
  }
}
