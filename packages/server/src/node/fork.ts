import { newId, type Tags } from '@sandlot/protocol'
import type { Entry } from './entry.ts'
import { checkpointable } from './memory.ts'
import type { AcquireRequest } from './port.ts'
import type { NodeParts, NodeSandboxes } from './sandboxes.ts'

/** One copy, or why there is none. */
export type Forked = { readonly entry: Entry } | { readonly error: unknown }

/**
 * Copies of a running sandbox, each as if it had been it; the original goes on. The first copy to come up proves what was saved; a copy
 * that fails costs no other.
 */
export async function forkMemory(
  { checkpoints }: Pick<NodeParts, 'checkpoints'>,
  sandboxes: NodeSandboxes,
  original: Entry,
  copies: { readonly ids: readonly string[]; readonly tags?: Tags },
): Promise<Forked[]> {
  checkpointable(original)
  const name = newId('snapshot').replace('sn_', 'fork-')
  try {
    await sandboxes.memory.save(original, name)
    const requests = copies.ids.map((id) => copyOf(original, { id, name, tags: copies.tags }))
    const forking = requests.map((request) =>
      sandboxes.acquire(request).then(
        (entry) => ({ entry }),
        (error: unknown) => ({ error }),
      ),
    )
    return await Promise.all(forking)
  } finally {
    await checkpoints.remove(name).catch(() => {})
  }
}

function copyOf(
  { record }: Entry,
  copy: { readonly id: string; readonly name: string; readonly tags: Tags | undefined },
): AcquireRequest {
  const { sandbox, project, owner, epoch, image, resources, env, workdir, user, network, phase } =
    record
  return {
    sandbox: copy.id,
    checkpoint: copy.name,
    parent: sandbox,
    tags: copy.tags ?? record.tags,
    ...{ project, owner, epoch, image, resources, env, workdir, user, network, phase },
    ...(record.keepWarmMs === null ? {} : { keepWarmMs: record.keepWarmMs }),
    ...(record.lifetimeMs === null ? {} : { lifetimeMs: record.lifetimeMs }),
  }
}
