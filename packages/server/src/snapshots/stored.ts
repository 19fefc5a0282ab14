/** Snapshots as the engine keeps them: what is read there, and what can't be. */
import type { Engine } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import { ImageError, type ImageStore, isUnreadableRecord, type PinnedImage } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { z } from 'zod'
import { kvRecords } from '../kv-records.ts'
import { type SnapshotRecord, snapshotRecord } from './record.ts'

const PREFIX = 'snapshot/'

export function keyOf({ project, id }: Pick<SnapshotRecord, 'project' | 'id'>): string {
  return `${PREFIX}${project}/${id}`
}

/** What is known of one that another version of the daemon wrote: nothing starts from it, and all that it names stays. */
const remnant = z.object({
  id: z.string(),
  project: z.string(),
  image: z.string().optional().catch(undefined),
  memory: z
    .object({ checkpoint: z.string(), below: z.string().optional() })
    .optional()
    .catch(undefined),
})
export type SnapshotRemnant = z.infer<typeof remnant>

export interface StoredSnapshots {
  readonly records: readonly SnapshotRecord[]
  readonly remnants: readonly SnapshotRemnant[]
}

/** Of two with one name, which a daemon left that died between two writes, the older one has lost it. */
export async function readAll({ kv }: Engine): Promise<StoredSnapshots> {
  const records: SnapshotRecord[] = []
  const remnants: SnapshotRemnant[] = []
  for await (const value of kvRecords(kv, PREFIX, z.unknown())) {
    const { data: record } = snapshotRecord.safeParse(value)
    const { data: rest } = remnant.safeParse(value)
    if (record) records.push(record)
    else if (rest) remnants.push(rest)
  }
  const taken = new Set<string>()
  const named = records
    .sort((a, b) => b.createdAtMs - a.createdAtMs)
    .map(({ name, ...rest }) => {
      const key = `${rest.project}/${name}`
      if (name === undefined || taken.has(key)) return rest
      taken.add(key)
      return { name, ...rest }
    })
  return { records: named, remnants }
}

/** All that its starts need; undefined where one of it is gone. */
export async function pinAll(
  images: ImageStore,
  { image, memory }: Pick<SnapshotRemnant, 'image' | 'memory'>,
): Promise<PinnedImage[] | undefined> {
  const pinned: PinnedImage[] = []
  try {
    for (const id of [image, memory?.below]) {
      if (id !== undefined) pinned.push(await images.pin(id))
    }
    return pinned
  } catch (error) {
    for (const each of pinned) each[Symbol.dispose]()
    if (error instanceof ImageError && error.code === 'image_unknown') return undefined
    throw error
  }
}

/**
 * The same when the daemon starts. An image whose record can't be read stays with its layers, so what has it stays too: its starts say which
 * file is damaged, and go on once that is mended.
 */
export async function pinAllThere(
  images: ImageStore,
  record: Pick<SnapshotRemnant, 'id' | 'image' | 'memory'>,
  log: Pick<Logger, 'error'>,
): Promise<PinnedImage[] | undefined> {
  try {
    return await pinAll(images, record)
  } catch (error) {
    if (!isUnreadableRecord(error)) throw error
    log.error({ snapshot: record.id, why: error.message }, 'the image of a snapshot is damaged')
    return []
  }
}

export function unreadable(id: string): SandlotError {
  const message = `the snapshot ${id} was written by another version of the daemon, which this one can't read`
  return new SandlotError('snapshot_incompatible', message, {
    hint: 'Start it with the daemon that wrote it, or delete it and take it again.',
  })
}
