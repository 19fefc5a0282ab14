import { newId, SandlotError, type SnapshotCreate } from '@sandlot/protocol'
import type { Image, ImageStore } from '@sandlot/runtime'
import type { Lent } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { lendFor, type SandboxCall } from '../sandboxes/use.ts'
import type { SnapshotRecord } from './record.ts'
import type { Snapshots } from './snapshots.ts'

export interface SnapshotServices {
  readonly node: Node
  readonly images: ImageStore
  readonly snapshots: Snapshots
  readonly now: () => number
}

/**
 * Saves the files of a running sandbox as one layer over the image that it was started from; the sandbox goes on. What is written
 * meanwhile is in it or not. Fails as the sandbox does, with `disk_full`, or where something in it can't be stored.
 */
export async function takeFilesystem(
  services: SnapshotServices,
  call: TakeCall,
  body: SnapshotBody,
  id = newId('snapshot'),
): Promise<SnapshotRecord> {
  using lent = await lendFor(services.node, call)
  try {
    return await services.snapshots.whileMaking(() => take(services, { call, body, id, lent }))
  } catch (error) {
    throw await lent.explain(error)
  }
}

/** Of a request, or of the daemon itself. */
type TakeCall = Pick<SandboxCall, 'params' | 'signal'> & {
  readonly caller: Pick<SandboxCall['caller'], 'project'>
}

interface SnapshotBody extends SnapshotCreate {
  /** When it is removed. Default: never. */
  readonly untilMs?: number
}

interface Taking {
  readonly call: TakeCall
  readonly body: SnapshotBody
  readonly id: string
  readonly lent: Lent
}

async function take(
  services: SnapshotServices,
  { call, body, id, lent }: Taking,
): Promise<SnapshotRecord> {
  const { name, tags = {}, exclude = [], hidden, untilMs } = body
  const { from, image, sizeBytes, warnings } = await takeFiles(services, lent, exclude, call.signal)
  return await services.snapshots.add({
    id,
    project: call.caller.project,
    kind: 'filesystem',
    ...(name === undefined ? {} : { name }),
    tags,
    image: image.id,
    parent: from,
    sandbox: lent.id,
    sizeBytes,
    createdAtMs: services.now(),
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(hidden ? { hidden } : {}),
    ...(untilMs === undefined ? {} : { untilMs }),
  })
}

export interface TakenFiles {
  readonly image: Image
  /** What its sandbox was started from. */
  readonly from: string
  /** That the image adds to the one below. */
  readonly sizeBytes: number
  /** What of them it can't have. */
  readonly warnings: string[]
}

/** An image of a sandbox's files, which stays while snapshots are being made. */
export async function takeFiles(
  { node, images }: SnapshotServices,
  lent: Lent,
  exclude: readonly string[],
  signal: AbortSignal,
): Promise<TakenFiles> {
  const entry = node.sandboxes.entries.get(lent.id)
  if (!entry) throw new SandlotError('sandbox_gone', `the sandbox ${lent.id} has ended`)
  const { image: below, from = below } = entry.record
  const difference = lent.guest.tar.difference('main', { exclude: [...exclude] }, { signal })
  const warnings: string[] = []
  const onWarning = (line: string) => void warnings.push(line)
  const image = await images.extend({ parent: below, difference, onWarning }, { signal })
  return { image, from, sizeBytes: addedBytes(image, await images.get(below)), warnings }
}

/** Of layers that the parent doesn't have. */
function addedBytes(image: Image, parent: Image): number {
  const below = new Set(parent.layers.map(({ digest }) => digest))
  const added = image.layers.filter(({ digest }) => !below.has(digest))
  return added.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}
