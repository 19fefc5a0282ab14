import { type ImagesRemoved, type ImageView, idKind, SandlotError } from '@sandlot/protocol'
import type { Collected, Image, ImageStore } from '@sandlot/runtime'
import type { Handlers } from '../http/call.ts'
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

export function imageHandlers(
  images: ImageStore,
  functions: ClientFunctions,
  startPoints: StartPoints,
  /** Id of the snapshot or the template whose files an image has. */
  keeperOf: (image: string) => string | undefined,
): Pick<Handlers, ImageRoutes> {
  return {
    buildImage: async ({ caller, body, signal }) =>
      logLines({
        signal,
        run: (wait) =>
          images.build(body, {
            ...wait,
            project: caller.project,
            resolveId: (id) => startPoints.image(caller.project, id),
            onFunction: functions.of(caller.project, wait.onLine),
          }),
        done: (image) => ({ image: imageViewOf(image) }),
      }),
    listImages: async ({ query }) => {
      const { items, next } = pageOf(await images.list(), query)
      const views = await Promise.all(items.map((image) => usedView(images, image)))
      return { items: views, next }
    },
    getImage: async ({ params }) =>
      usedView(images, await images.get(checkedId('image', params.id))),
    removeImage: async ({ params, signal }) => {
      const id = checkedId('image', params.id)
      const keeper = keeperOf(id)
      if (keeper !== undefined) throw isKept(id, keeper)
      return removedOf(await images.remove(id, { signal }))
    },
    verifyImage: async ({ params, signal }) => ({
      problems: [...(await images.verify(checkedId('image', params.id), { signal }))],
    }),
    exportImage: async ({ params, query }) => {
      const { id } = await images.get(checkedId('image', params.id))
      const body = images.export(id, query.format ?? 'oci')
      return { body, headers: { 'content-type': 'application/x-tar' } }
    },
    pruneImages: async ({ body: { what, keep = 0 }, signal }) =>
      removedOf(
        what === 'all'
          ? await images.collect(keep, { signal })
          : await images.collectIntermediate({ signal }),
      ),
  }
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
