import { isDeepStrictEqual } from 'node:util'
import {
  completeResources,
  formatSize,
  type Resources,
  type SandboxCreate,
  SandlotError,
} from '@sandlot/protocol'
import type { RunMemory } from '../coordinator/port.ts'
import type { AcquireRequest } from '../node/port.ts'
import type { SavedMemory, StartPoint } from '../start-points.ts'

/** What a request may say of where it starts from. */
export type StartWishes = Pick<
  SandboxCreate,
  'resources' | 'env' | 'workdir' | 'user' | 'ifIncompatible'
>

type Start = Pick<
  AcquireRequest,
  'image' | 'resources' | 'env' | 'workdir' | 'user' | keyof RunMemory
>

/** What is started: over an image, or from the memory of a snapshot, whose commands go on seeing what they saw. */
export function startOf({ image, resources, memory }: StartPoint, wishes: StartWishes): Start {
  const { env, workdir, user } = wishes
  if (memory === undefined) {
    return {
      image,
      resources: completeResources({ ...resources, ...wishes.resources }),
      ...(env ? { env } : {}),
      ...(workdir === undefined ? {} : { workdir }),
      ...(user === undefined ? {} : { user }),
    }
  }
  refuseOthers(memory, wishes.resources)
  return {
    image: memory.below,
    resources: memory.resources,
    env: { ...memory.env, ...env },
    workdir: workdir ?? memory.workdir,
    user: user ?? memory.user,
    checkpoint: memory.checkpoint,
    ...(memory.onRestore ? { onRestore: memory.onRestore } : {}),
    ...(wishes.ifIncompatible === 'cold' ? { coldInstead: image } : {}),
  }
}

/** The limits are part of what was saved. */
function refuseOthers(memory: SavedMemory, wished: SandboxCreate['resources']): void {
  for (const [name, value] of Object.entries(wished ?? {})) {
    const fixed: unknown = (memory.resources as Resources)[name as keyof Resources]
    if (value === undefined || isDeepStrictEqual(value, fixed)) continue
    throw new SandlotError(
      'invalid_request',
      `body.resources.${name}: those of a memory snapshot are fixed, here at ${shown(name, fixed)}`,
      {
        hint: 'Leave resources out, or take the snapshot of a sandbox that has those that you want.',
      },
    )
  }
}

/** Sizes as a person writes them. */
function shown(name: string, value: unknown): string {
  const isSize = name === 'memory' || name === 'disk'
  return JSON.stringify(value, (_, part) =>
    isSize && typeof part === 'number' ? formatSize(part) : part,
  )
}
