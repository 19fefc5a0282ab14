import { type Engine, systemClock } from '@sandlot/engine'
import type { ImageStore } from '@sandlot/runtime'
import type { Logger } from 'pino'
import type { Coordinator } from './coordinator/coordinator.ts'
import type { SandboxKeeper } from './coordinator/leaving.ts'
import { Holdings } from './holdings/holdings.ts'
import { OwnImages } from './holdings/own-images.ts'
import type { Checkpoints } from './node/checkpoints.ts'
import type { Node } from './node/node.ts'
import { sandboxKeeper } from './snapshots/keeper.ts'
import { Snapshots } from './snapshots/snapshots.ts'
import type { SnapshotServices } from './snapshots/take.ts'
import { userOf } from './snapshots/user-of.ts'
import { StartPoints } from './start-points.ts'
import { templateMemory } from './templates/save-memory.ts'
import { Templates } from './templates/templates.ts'

export interface SavedParts {
  readonly engine: Engine
  readonly images: ImageStore
  readonly log: Logger
  readonly checkpoints: Checkpoints
  /** What the daemon opens later; until then nothing of it uses a snapshot, and none is taken. */
  readonly opened: { readonly node?: Node; readonly coordinator?: Coordinator }
}

export interface Saved {
  /** Keeps the files of episodes' sandboxes. */
  readonly keeper: SandboxKeeper
  readonly snapshots: Snapshots
  readonly templates: Templates
  readonly startPoints: StartPoints
  readonly holdings: Holdings
  readonly ownImages: OwnImages
}

/** What sandboxes start from beside images: snapshots and templates, and the ids of both. */
export async function openSaved(parts: SavedParts): Promise<Saved> {
  const { engine, images, log, checkpoints, opened } = parts
  const { now } = systemClock
  const made: { templates?: Templates } = {}
  const snapshots = await Snapshots.open({
    engine,
    images,
    checkpoints,
    user: (record) => userOf(record, { ...opened, ...made }),
    now,
    log,
  })
  const holdings = await Holdings.open({ kv: engine.kv, images: () => allImages(images) })
  const ownImages = new OwnImages({
    holdings,
    isKept: (project, image) =>
      snapshots.hasImage(project, image) || templates.hasImage(project, image),
  })
  const services = (): SnapshotServices => ({ node: opened.node as Node, images, snapshots, now })
  const templates = await Templates.open({
    engine,
    images,
    imageOf: (project, id) => startPoints.image(project, id),
    onImage: (project, image) => ownImages.add(project, image),
    memory: templateMemory(services),
    now,
    log,
  })
  made.templates = templates
  const startPoints = new StartPoints({
    template: (project, idOrName) => templates.get(project, idOrName),
    snapshot: (project, idOrName) => snapshots.use(project, idOrName),
    isTemplate: (project, name) => templates.named(project, name) !== undefined,
    isSnapshot: (project, name) => snapshots.named(project, name) !== undefined,
    image: (project, id) => ownImages.require(project, id),
  })
  return { snapshots, templates, startPoints, holdings, ownImages, keeper: sandboxKeeper(services) }
}

async function allImages(images: ImageStore): Promise<string[]> {
  const all = [...(await images.list()), ...(await images.listExtended())]
  return all.map(({ id }) => id)
}
