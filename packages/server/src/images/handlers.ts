import { type ImageView, idOf, LIMITS, SandlotError } from '@sandlot/protocol'
import type { Image, ImageStore } from '@sandlot/runtime'
import { toSandlotError } from '../failure.ts'
import type { Call, Handlers } from '../http/call.ts'
import { SERVER_LIMITS } from '../limits.ts'

type ImageRoutes =
  | 'buildImage'
  | 'listImages'
  | 'getImage'
  | 'removeImage'
  | 'verifyImage'
  | 'exportImage'
  | 'pruneImages'

export function imageHandlers(images: ImageStore): Pick<Handlers, ImageRoutes> {
  return {
    // Its last line says how it ended, so that a build that fails after minutes of log has its error in the same place.
    buildImage: async (call) => buildLines(images, call),
    listImages: async ({ query }) => {
      const all = await images.list()
      const from = query.after === undefined ? 0 : all.findIndex(({ id }) => id === query.after) + 1
      const limit = query.limit ?? Math.min(100, LIMITS.itemsPerPage)
      const page = all.slice(from, from + limit)
      const items = await Promise.all(page.map((image) => usedView(images, image)))
      return { items, next: from + limit < all.length ? (items.at(-1)?.id ?? null) : null }
    },
    getImage: async ({ params }) => usedView(images, await images.get(imageIdOf(params.id))),
    removeImage: async ({ params, signal }) => {
      await images.remove(imageIdOf(params.id), { signal })
      return undefined
    },
    verifyImage: async ({ params, signal }) => ({
      problems: [...(await images.verify(imageIdOf(params.id), { signal }))],
    }),
    exportImage: async ({ params, query }) => {
      const { id } = await images.get(imageIdOf(params.id))
      const body = images.export(id, query.format ?? 'oci')
      return { body, headers: { 'content-type': 'application/x-tar' } }
    },
    pruneImages: async ({ body: { what, keep = 0 }, signal }) => {
      const { images: gone, freedBytes } =
        what === 'all'
          ? await images.collect(keep, { signal })
          : await images.collectIntermediate({ signal })
      return { removed: gone.map(({ id }) => id), freedBytes }
    },
  }
}

async function* buildLines(images: ImageStore, call: Call<'buildImage'>): AsyncGenerator<unknown> {
  const lines: string[] = []
  let wake = Promise.withResolvers<void>()
  let dropped = 0
  const stop = new AbortController()
  const built = images.build(call.body, {
    signal: AbortSignal.any([call.signal, stop.signal]),
    onLog: (line) => {
      if (lines.length < SERVER_LIMITS.buildLinesWaiting) lines.push(line)
      else dropped += 1
      wake.resolve()
    },
  })
  let over = false
  built
    .catch(() => {})
    .finally(() => {
      over = true
      wake.resolve()
    })
  try {
    for (;;) {
      for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
        yield { kind: 'log', line }
      }
      if (dropped > 0) yield { kind: 'log', line: `(${dropped} lines were not read in time)` }
      dropped = 0
      if (over && lines.length === 0) break
      await wake.promise
      wake = Promise.withResolvers()
    }
    yield await built.then(
      (image) => ({ kind: 'done', image: imageViewOf(image) }),
      (error) => ({ kind: 'error', error: toSandlotError(error).toEnvelope().error }),
    )
  } finally {
    stop.abort()
  }
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

const imageId = idOf('image')

function imageIdOf(text: string | undefined): string {
  const parsed = imageId.safeParse(text)
  if (parsed.success) return parsed.data
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  throw new SandlotError('image_unknown', `${shown} is not the id of an image`)
}
