import { type ImagesRemoved, type ImageView, idKind, SandlotError } from '@sandlot/protocol'
import type { Collected, Image, ImageStore } from '@sandlot/runtime'
import type { OwnImages } from '../holdings/own-images.ts'
import type { Call, Handlers } from '../http/call.ts'
import { checkedId } from '../http/checked-id.ts'
import { logLines } from '../http/log-lines.ts'
import { pageOf } from '../http/page.ts'
import type { StartPoints } from '../start-points.ts'
import type { ClientFunctions } from './client-functions.ts'

type ImageRoutes =
  | 'buildImage'
  | 'listImages'
  | 'getImage'
  | 'removeImage'
  | 'verifyImage'
  | 'exportImage'
  | 'pruneImages'

export interface ImageParts {
  readonly images: ImageStore
  readonly functions: ClientFunctions
  readonly startPoints: StartPoints
  readonly own: OwnImages
  /** Id of the snapshot or the template whose files an image has. */
  readonly keeperOf: (image: string) => string | undefined
}

/** Images are stored once, and each project has those that it asked for. */
export function imageHandlers(parts: ImageParts): Pick<Handlers, ImageRoutes> {
  const { images, functions, startPoints, own, keeperOf } = parts
  return {
    buildImage: async ({ caller, body, signal }) =>
      logLines({
        signal,
        run: async (wait) => {
          const image = await images.build(body, {
            ...wait,
            project: caller.project,
            resolveId: (id) => startPoints.image(caller.project, id),
            onFunction: functions.of(caller.project, wait.onLine),
          })
          await own.add(caller.project, image.id)
          return image
        },
        done: (image) => ({ image: imageViewOf(image) }),
      }),
    listImages: async ({ caller, query }) => {
      const { items, next } = pageOf(await own.of(caller.project, await images.list()), query)
      const views = await Promise.all(items.map((image) => usedView(images, image)))
      return { items: views, next }
    },
    getImage: async (call) => usedView(images, await images.get(await ownId(own, call))),
    removeImage: async (call) => {
      const { caller, signal } = call
      const id = await ownId(own, call)
      if (await own.isSharedWithOthers(caller.project, id)) {
        await own.drop(caller.project, id)
        return { removed: [id], freedBytes: 0 }
      }
      const keeper = keeperOf(id)
      if (keeper !== undefined) throw isKept(id, keeper)
      const removed = removedOf(await images.remove(id, { signal }))
      await own.drop(caller.project, id)
      return removed
    },
    verifyImage: async (call) => ({
      problems: [...(await images.verify(await ownId(own, call), { signal: call.signal }))],
    }),
    exportImage: async (call) => {
      const { id } = await images.get(await ownId(own, call))
      const body = images.export(id, call.query.format ?? 'oci')
      return { body, headers: { 'content-type': 'application/x-tar' } }
    },
    pruneImages: async ({ caller, body: { what, keep = 0 }, signal }) => {
      if (!caller.isOperator) throw isOfAll()
      return removedOf(
        what === 'all'
          ? await images.collect(keep, { signal })
          : await images.collectIntermediate({ signal }),
      )
    },
  }
}

/** @throws SandlotError `image_unknown` for what another project has */
async function ownId(
  own: OwnImages,
  { params, caller }: Pick<Call<'getImage'>, 'params' | 'caller'>,
): Promise<string> {
  const id = checkedId('image', params.id)
  await own.require(caller.project, id)
  return id
}

function isOfAll(): SandlotError {
  return new SandlotError('forbidden', 'what this removes may be that of other projects', {
    hint: 'Remove images one by one, or use the key of the daemon’s machine.',
  })
}

function removedOf({ images, freedBytes }: Collected): ImagesRemoved {
  return { removed: images.map(({ id }) => id), freedBytes }
}

async function usedView(images: ImageStore, image: Image): Promise<ImageView> {
  const lastUsedAtMs = Math.floor(await images.usedAtMs(image.id))
  return { ...imageViewOf(image), lastUsedAtMs }
}

export function imageViewOf(image: Image): ImageView {
  const { id, digest, source, layers, config, sizeBytes, createdAtMs } = image
  return {
    id,
    digest,
    source,
    layers: layers.map((layer) => ({ digest: layer.digest, sizeBytes: layer.sizeBytes })),
    config,
    sizeBytes,
    createdAtMs,
  }
}

function isKept(image: string, keeper: string): SandlotError {
  const kind = idKind(keeper) === 'template' ? 'template' : 'snapshot'
  return new SandlotError('image_in_use', `the image ${image} has the files of ${keeper}`, {
    hint: `Delete the ${kind}: \`sandlot ${kind}s delete ${keeper}\`.`,
  })
}
