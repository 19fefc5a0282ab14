/** How an image appears in the store: its layers first, then its record. */
import type { ImageSource } from '@sandlot/protocol'
import type { BuiltImage } from './build.ts'
import { type Image, imageDigest, imageId } from './image.ts'
import type { ImageFiles } from './image-files.ts'

export interface Publishing {
  readonly files: ImageFiles
  /** Where the new layers are, and the records while they are written. */
  readonly directory: string
  readonly source: ImageSource
  /** Only on the way to another image. */
  readonly intermediate: boolean
  /** It is another form of this image. */
  readonly joinedOf?: string
  /** From now on it leads to the image. */
  readonly key?: string
  readonly now: () => number
  readonly signal: AbortSignal
}

/** One that is there already keeps its age, and its source unless nobody had asked for it. */
export async function publishImage(built: BuiltImage, publishing: Publishing): Promise<Image> {
  const { files, directory, source, intermediate, joinedOf, key, now, signal } = publishing
  using _lock = await files.lockStore(signal)
  const digest = imageDigest(built.layers, built.config)
  const id = imageId(digest)
  const layers = []
  for (const layer of built.layers) layers.push(await files.publishLayer(layer))
  const known = await files.find(id)
  if (known && joinedOf !== undefined) {
    if (key !== undefined) await files.publishKey(key, id, directory)
    return known
  }
  const isAsked = known !== undefined && !known.intermediate && known.joinedOf === undefined
  // What came out of a sandbox, and now is asked for by its steps, is an image like any other.
  const keepsSource = isAsked && (intermediate || known.source.kind !== 'id')
  const image: Image = {
    id,
    digest,
    layers,
    config: built.config,
    sizeBytes: layers.reduce((sum, layer) => sum + layer.sizeBytes, 0),
    createdAtMs: known?.createdAtMs ?? now(),
    source: keepsSource ? known.source : source,
    ...(intermediate && !isAsked ? { intermediate } : {}),
    ...(joinedOf === undefined ? {} : { joinedOf }),
  }
  await files.publishImage(image, directory)
  if (key !== undefined) await files.publishKey(key, id, directory)
  return image
}
