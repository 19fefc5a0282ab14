/**
 * The store's files. Nothing is ever changed in place: a file is written in a build's own temporary directory, made durable,
 * and renamed. So a crash leaves only temporary directories.
 *
 * ```
 * layers/<sha256>.erofs   images/<image id>.json   keys/<source key>.json   locks/<name>   tmp/<source key>/
 * ```
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImageView, idOf, imageView } from '@sandlot/protocol'
import { z } from 'zod'
import { tryFileLock } from './file-lock.ts'
import type { Image, ImageLayer } from './image.ts'

const imageIdSchema = idOf('image')
const keySchema = z.object({ image: imageIdSchema })
const KEY = /^[0-9a-f]{64}$/

export class ImageFiles {
  readonly directory: string

  private constructor(directory: string) {
    this.directory = directory
  }

  /** Makes what is missing, and removes what builds left that ended with their process. */
  static async open(directory: string): Promise<ImageFiles> {
    const files = new ImageFiles(directory)
    for (const name of ['layers', 'images', 'keys', 'locks', 'tmp']) {
      await mkdir(join(directory, name), { recursive: true, mode: 0o700 })
    }
    for (const name of await readdir(join(directory, 'tmp'))) {
      using lock = tryFileLock(files.lockPath(name))
      if (lock) await rm(join(directory, 'tmp', name), { recursive: true, force: true })
    }
    return files
  }

  lockPath(name: string): string {
    return join(this.directory, 'locks', name)
  }

  /** A build's own empty directory. Only for the holder of the key's lock. */
  async temporary(key: string): Promise<AsyncDisposable & { readonly path: string }> {
    const path = join(this.directory, 'tmp', key)
    const remove = (): Promise<void> => rm(path, { recursive: true, force: true })
    await remove()
    await mkdir(path, { mode: 0o700 })
    return { path, [Symbol.asyncDispose]: remove }
  }

  async find(id: string): Promise<Image | undefined> {
    if (!imageIdSchema.safeParse(id).success) return undefined
    const document = await readJson(join(this.directory, 'images', `${id}.json`))
    return document === undefined ? undefined : this.#image(imageView.parse(document))
  }

  /** The image of a source, when it and all its layers are there. */
  async findByKey(key: string): Promise<Image | undefined> {
    const document = await readJson(join(this.directory, 'keys', `${key}.json`))
    if (document === undefined) return undefined
    const image = await this.find(keySchema.parse(document).image)
    if (!image) return undefined
    const present = await Promise.all(image.layers.map(isPresent))
    return present.every(Boolean) ? image : undefined
  }

  async list(): Promise<Image[]> {
    const names = await readdir(join(this.directory, 'images'))
    const images = await Promise.all(names.map((name) => this.find(name.replace(/\.json$/, ''))))
    return images
      .filter((image) => image !== undefined)
      .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }

  /** Where a layer lies. */
  layerPath(digest: string): string {
    return join(this.directory, 'layers', `${digest.slice('sha256:'.length)}.erofs`)
  }

  /** Moves a finished, durable layer to its place. A layer that is there and sound stays: sandboxes share its pages. */
  async publishLayer(layer: ImageLayer): Promise<ImageLayer> {
    const path = this.layerPath(layer.digest)
    const present = { ...layer, path }
    if (!(await isPresent(present)) || (await fileDigest(path)) !== layer.digest) {
      await rename(layer.path, path)
      await syncDirectory(join(this.directory, 'layers'))
    }
    return present
  }

  async publishImage(image: Image, temporary: string): Promise<void> {
    const view: ImageView = {
      id: image.id,
      digest: image.digest,
      source: image.source,
      layers: image.layers.map(({ digest, sizeBytes }) => ({ digest, sizeBytes })),
      config: image.config,
      sizeBytes: image.sizeBytes,
      createdAtMs: image.createdAtMs,
    }
    await this.#publishJson('images', image.id, view, temporary)
  }

  async publishKey(key: string, image: string, temporary: string): Promise<void> {
    await this.#publishJson('keys', key, { image }, temporary)
  }

  /** Removes an image, the keys that lead to it, and the layers that no other image has. The image goes last but one. */
  async remove(image: Image): Promise<void> {
    const keys = join(this.directory, 'keys')
    for (const name of await readdir(keys)) {
      const found = keySchema.safeParse(await readJson(join(keys, name))).data
      if (KEY.test(name.replace(/\.json$/, '')) && found?.image === image.id) {
        await rm(join(keys, name), { force: true })
      }
    }
    await rm(join(this.directory, 'images', `${image.id}.json`), { force: true })
    await this.removeUnusedLayers()
  }

  /** Layers that no image has: what a crash between a layer and its image left. */
  async removeUnusedLayers(): Promise<void> {
    const used = new Set(
      (await this.list()).flatMap((image) => image.layers.map(({ path }) => path)),
    )
    const layers = join(this.directory, 'layers')
    for (const name of await readdir(layers)) {
      if (!used.has(join(layers, name))) await rm(join(layers, name), { force: true })
    }
  }

  #image(view: ImageView): Image {
    const layers = view.layers.map((layer) => ({ ...layer, path: this.layerPath(layer.digest) }))
    return { ...view, layers }
  }

  async #publishJson(
    folder: string,
    name: string,
    value: unknown,
    temporary: string,
  ): Promise<void> {
    const from = join(temporary, `${name}.json`)
    {
      await using file = await open(from, 'w', 0o600)
      await file.writeFile(`${JSON.stringify(value, null, 2)}\n`)
      await file.sync()
    }
    await rename(from, join(this.directory, folder, `${name}.json`))
    await syncDirectory(join(this.directory, folder))
  }
}

/** `sha256:…` of a file's content. */
export async function fileDigest(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }))
    hash.update(chunk)
  return `sha256:${hash.digest('hex')}`
}

async function isPresent(layer: ImageLayer): Promise<boolean> {
  const found = await stat(layer.path).catch(() => undefined)
  return found?.size === layer.sizeBytes
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw cause
  }
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path)
  await directory.sync()
}
