/**
 * The store's files. Nothing is ever changed in place: a file is written in a build's own temporary directory, made durable,
 * and renamed. So a crash leaves only temporary directories.
 *
 * ```
 * layers/<sha256>.erofs   images/<image id>.json   keys/<source key>.json   tmp/<source key>/   tmp/own-<number>/
 * locks/store   locks/<name below tmp>, while it is held
 * ```
 */
import { createHash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { acquireFileLock, tryFileLock } from './file-lock.ts'
import type { Image, ImageLayer } from './image.ts'
import { ImageError } from './image-error.ts'
import {
  type ImageRecord,
  ifSyntax,
  imageIdSchema,
  keySchema,
  readJson,
  readRecord,
} from './image-record.ts'

const STORE_LOCK = 'store'

/** A last use within this time of the one before is not written down. */
const TOUCH_MS = 10_000

/** Records that are kept in memory. */
const RECORDS_KNOWN = 256

const KEY = /^[0-9a-f]{64}$/
const OWN = /^own-[0-9]+$/

export class ImageFiles {
  readonly directory: string
  readonly #touchedAtMs = new Map<string, number>()
  /** Records as they were read, oldest first. */
  readonly #known = new Map<string, { readonly stamp: string; readonly image: Image }>()

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
    for (const name of await readdir(join(directory, 'locks'))) {
      // A lock that is free takes its file with it.
      if (KEY.test(name) || OWN.test(name)) tryFileLock(files.lockPath(name))?.[Symbol.dispose]()
    }
    return files
  }

  /** Held while images appear and disappear, so that no layer goes while an image that has it comes. */
  async lockStore(signal: AbortSignal): Promise<Disposable> {
    return await acquireFileLock(this.lockPath(STORE_LOCK), signal, { fileStays: true })
  }

  lockPath(name: string): string {
    return join(this.directory, 'locks', name)
  }

  /** A name below `tmp` with its lock, for what has no key and is wanted by one caller alone. There are as many as are used at once. */
  ownPlace(): Disposable & { readonly name: string } {
    for (let number = 0; ; number++) {
      const name = `own-${number}`
      const lock = tryFileLock(this.lockPath(name))
      if (lock) return { name, [Symbol.dispose]: () => lock[Symbol.dispose]() }
    }
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
    const known = this.findKnown(id)
    if (known || !imageIdSchema.safeParse(id).success) return known
    const path = this.#recordPath(id)
    const stamp = stampOf(path)
    const record = await readRecord(path)
    if (record === undefined) return undefined
    const image = this.#image(record)
    if (stamp !== undefined) this.#remember(image, stamp)
    return image
  }

  /** An image whose record was read before and is still the same file: known at once. */
  findKnown(id: string): Image | undefined {
    const known = this.#known.get(id)
    return known && stampOf(this.#recordPath(id)) === known.stamp ? known.image : undefined
  }

  /** The image of a source, when it and all its layers are there. */
  async findByKey(key: string): Promise<Image | undefined> {
    if (!KEY.test(key)) return undefined
    const found = await this.#keyed(`${key}.json`)
    const image = found && (await this.find(found))
    if (!image) return undefined
    const present = await Promise.all(image.layers.map(isPresent))
    return present.every(Boolean) ? image : undefined
  }

  /** Intermediate ones too. One whose record can't be read is left out, and fails whoever asks for it by its id. */
  async list(): Promise<Image[]> {
    return (await this.#readAll()).images
  }

  async #readAll(): Promise<{ readonly images: Image[]; readonly unreadable: number }> {
    const images: Image[] = []
    let unreadable = 0
    for (const name of await readdir(join(this.directory, 'images'))) {
      try {
        const image = await this.find(name.replace(/\.json$/, ''))
        if (image) images.push(image)
      } catch (error) {
        if (!(error instanceof ImageError)) throw error
        unreadable += 1
      }
    }
    images.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
    return { images, unreadable }
  }

  /** Notes that an image was used just now: the time of its record. */
  touch(id: string): void {
    const nowMs = Date.now()
    if (nowMs - (this.#touchedAtMs.get(id) ?? 0) < TOUCH_MS) return
    this.#touchedAtMs.set(id, nowMs)
    // It may just have been removed; and on a full disk the old time is good enough.
    utimes(this.#recordPath(id), nowMs / 1000, nowMs / 1000).catch(() => {})
  }

  /** When an image was used last, or made. Milliseconds since 1970. */
  async usedAtMs(id: string): Promise<number> {
    return (await stat(this.#recordPath(id)).catch(() => undefined))?.mtimeMs ?? 0
  }

  /** Where a layer lies. */
  layerPath(digest: string): string {
    return join(this.directory, 'layers', `${digest.slice('sha256:'.length)}.erofs`)
  }

  /** Moves a finished, durable layer to its place. A layer that is there and sound stays: sandboxes share its pages. */
  async publishLayer(layer: ImageLayer): Promise<ImageLayer> {
    const path = this.layerPath(layer.digest)
    const present = { ...layer, path }
    // One of the image that this one is made from.
    if (layer.path === path) return present
    if (!(await isPresent(present)) || (await fileDigest(path)) !== layer.digest) {
      await rename(layer.path, path)
      await syncDirectory(join(this.directory, 'layers'))
    }
    return present
  }

  async publishImage(image: Image, temporary: string): Promise<void> {
    const record: ImageRecord = {
      id: image.id,
      digest: image.digest,
      source: image.source,
      layers: image.layers.map(({ digest, sizeBytes }) => ({ digest, sizeBytes })),
      config: image.config,
      sizeBytes: image.sizeBytes,
      createdAtMs: image.createdAtMs,
      ...(image.intermediate ? { intermediate: true } : {}),
      ...(image.joinedOf === undefined ? {} : { joinedOf: image.joinedOf }),
    }
    await this.#publishJson('images', image.id, record, temporary)
  }

  async publishKey(key: string, image: string, temporary: string): Promise<void> {
    await this.#publishJson('keys', key, { image }, temporary)
  }

  /** Removes images, the keys that lead to them, and the layers that no other image has. The layers go last. */
  async remove(images: readonly Image[]): Promise<{ freedBytes: number }> {
    const ids = new Set(images.map(({ id }) => id))
    const keys = join(this.directory, 'keys')
    for (const name of await readdir(keys)) {
      const found = KEY.test(name.replace(/\.json$/, '')) && (await this.#keyed(name))
      if (found && ids.has(found)) await rm(join(keys, name), { force: true })
    }
    for (const id of ids) {
      this.#touchedAtMs.delete(id)
      await rm(this.#recordPath(id), { force: true })
    }
    return await this.removeUnusedLayers()
  }

  /** Layers that no image has: what a crash between a layer and its image left. None, where a record can't be read: they may be its. */
  async removeUnusedLayers(): Promise<{ freedBytes: number }> {
    const { images, unreadable } = await this.#readAll()
    if (unreadable > 0) return { freedBytes: 0 }
    const used = new Set(images.flatMap((image) => image.layers.map(({ path }) => path)))
    const layers = join(this.directory, 'layers')
    let freedBytes = 0
    for (const name of await readdir(layers)) {
      const path = join(layers, name)
      if (used.has(path)) continue
      freedBytes += (await stat(path)).size
      await rm(path, { force: true })
    }
    return { freedBytes }
  }

  #remember(image: Image, stamp: string): void {
    this.#known.delete(image.id)
    this.#known.set(image.id, { stamp, image })
    const [oldest] = this.#known.keys()
    if (this.#known.size > RECORDS_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }

  /** To which image a key leads. One that can't be read leads to none: it is built again. */
  async #keyed(name: string): Promise<string | undefined> {
    const document = await readJson(join(this.directory, 'keys', name)).catch(ifSyntax)
    return keySchema.safeParse(document).data?.image
  }

  #recordPath(id: string): string {
    return join(this.directory, 'images', `${id}.json`)
  }

  #image({ intermediate, joinedOf, ...view }: ImageRecord): Image {
    const layers = view.layers.map((layer) => ({ ...layer, path: this.layerPath(layer.digest) }))
    const form = joinedOf === undefined ? {} : { joinedOf }
    return { ...view, layers, ...(intermediate ? { intermediate } : {}), ...form }
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

/** Another one is another file: none is ever changed in place. */
function stampOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.ino} ${found.birthtimeNs} ${found.size}`
}

async function isPresent(layer: ImageLayer): Promise<boolean> {
  const found = await stat(layer.path).catch(() => undefined)
  return found?.size === layer.sizeBytes
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path)
  await directory.sync()
}
