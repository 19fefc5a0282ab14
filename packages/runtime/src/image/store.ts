import type { ImageSource } from '@sandlot/protocol'
import type { BuildContext, BuiltImage, OpenBlob } from './build.ts'
import { buildDebian, type DebianOptions } from './debian.ts'
import { LayerTooLarge } from './erofs/block-file.ts'
import { acquireFileLock } from './file-lock.ts'
import { type Image, imageDigest, imageId } from './image.ts'
import { diskFull, ImageError, isDiskFull, sourceInvalid } from './image-error.ts'
import { fileDigest, ImageFiles } from './image-files.ts'
import { imageLimits } from './limits.ts'
import { buildOci } from './oci.ts'
import { type BuildRun, type BuildWait, SharedBuilds } from './shared-builds.ts'
import { normalizedSource, sourceKey } from './source.ts'
import { TarError } from './tar/header.ts'
import { buildTarImage } from './tar-image.ts'

/**
 * The images of this machine. Several processes may have the same directory open: a source is built once, whoever asks.
 */
export interface ImageStore extends AsyncDisposable {
  /**
   * The image of a source, built when it is not here yet. Building is shared by all who ask for the same source; it is given
   * up when the last of them is aborted, and then leaves nothing. `onLog` gets the lines of the build, none when nothing had
   * to be built. Fails with `image_source_invalid`, `image_build_failed`, `disk_full`, or as `openBlob` does.
   */
  build(source: ImageSource, wait?: BuildWait): Promise<Image>

  /** Fails with `image_unknown`. */
  get(id: string): Promise<Image>
  find(id: string): Promise<Image | undefined>
  /** Oldest first. */
  list(): Promise<readonly Image[]>

  /**
   * Keeps an image from being removed while something uses it. Pins end with this process; while there is one of an image,
   * the next ones read no file. Fails with `image_unknown`.
   */
  pin(id: string): Promise<PinnedImage>

  /** Removes an image and the layers that no other image has. Fails with `image_unknown` or `image_in_use`. */
  remove(id: string, wait?: { readonly signal?: AbortSignal }): Promise<void>

  /** Reads all layers and compares them with their digests. Fails with `image_unknown`. */
  verify(id: string): Promise<readonly LayerProblem[]>

  /** Gives up what is being built. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface PinnedImage extends Disposable {
  readonly image: Image
}

export interface LayerProblem {
  readonly digest: string
  readonly problem: 'missing' | 'damaged'
}

export interface ImageStoreOptions {
  /** Everything the store has lies below it. Made when missing. */
  readonly directory: string
  readonly openBlob: OpenBlob
  readonly debian?: DebianOptions
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

export async function openImageStore(options: ImageStoreOptions): Promise<ImageStore> {
  return new FileImageStore(options, await ImageFiles.open(options.directory))
}

/** Held while images appear and disappear, so that no layer goes while an image that has it comes. */
const STORE_LOCK = 'store'

interface Pins {
  held: number
  /** Known as soon as one of the pins has read it. */
  image: Image | undefined
}

class FileImageStore implements ImageStore {
  readonly #options: ImageStoreOptions
  readonly #files: ImageFiles
  readonly #builds = new SharedBuilds<Image>()
  readonly #pins = new Map<string, Pins>()
  readonly #removing = new Set<string>()

  constructor(options: ImageStoreOptions, files: ImageFiles) {
    this.#options = options
    this.#files = files
  }

  async build(source: ImageSource, wait: BuildWait = {}): Promise<Image> {
    const normalized = normalizedSource(source)
    const key = sourceKey(normalized)
    const present = await this.#files.findByKey(key)
    if (present) return present
    return await this.#builds.run(key, wait, (run) => this.#buildOnce(normalized, key, run))
  }

  async get(id: string): Promise<Image> {
    const image = await this.find(id)
    if (image) return image
    throw new ImageError('image_unknown', `There is no image ${JSON.stringify(id)}.`, {
      hint: 'Build it first, or list the images to see which are here.',
    })
  }

  async find(id: string): Promise<Image | undefined> {
    return await this.#files.find(id)
  }

  async list(): Promise<readonly Image[]> {
    return await this.#files.list()
  }

  async pin(id: string): Promise<PinnedImage> {
    if (this.#removing.has(id)) return { image: await this.get(id), [Symbol.dispose]: () => {} }
    const pins = this.#pins.get(id) ?? { held: 0, image: undefined }
    this.#pins.set(id, pins)
    pins.held += 1
    let held = true
    const release = (): void => {
      if (held) pins.held -= 1
      held = false
      if (pins.held === 0) this.#pins.delete(id)
    }
    try {
      pins.image ??= await this.get(id)
      return { image: pins.image, [Symbol.dispose]: release }
    } catch (cause) {
      release()
      throw cause
    }
  }

  async remove(id: string, wait: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const image = await this.get(id)
    using _lock = await this.#lock(STORE_LOCK, wait.signal)
    if (this.#pins.has(id)) {
      throw new ImageError('image_in_use', `Image ${id} is in use.`, {
        hint: 'Stop the sandboxes that were made from it, then remove it.',
      })
    }
    this.#removing.add(id)
    try {
      await this.#files.remove(image)
    } finally {
      this.#removing.delete(id)
    }
  }

  async verify(id: string): Promise<readonly LayerProblem[]> {
    const problems: LayerProblem[] = []
    for (const { digest, path } of (await this.get(id)).layers) {
      const found = await fileDigest(path).catch(() => undefined)
      if (found === undefined) problems.push({ digest, problem: 'missing' })
      else if (found !== digest) problems.push({ digest, problem: 'damaged' })
    }
    return problems
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#builds.close(new Error('the image store is closing'))
  }

  async #buildOnce(source: ImageSource, key: string, run: BuildRun): Promise<Image> {
    try {
      using _lock = await this.#lock(key, run.signal)
      const present = await this.#files.findByKey(key)
      if (present) return present
      await using temporary = await this.#files.temporary(key)
      const context = this.#context(temporary.path, run)
      const built = await buildFrom(source, context, this.#options.debian ?? {})
      run.signal.throwIfAborted()
      return await this.#publish(built, source, key, context)
    } catch (cause) {
      throw asImageError(cause, source, this.#files.directory)
    }
  }

  async #publish(
    built: BuiltImage,
    source: ImageSource,
    key: string,
    context: BuildContext,
  ): Promise<Image> {
    using _lock = await this.#lock(STORE_LOCK, context.signal)
    const digest = imageDigest(built.layers, built.config)
    const id = imageId(digest)
    const layers = []
    for (const layer of built.layers) layers.push(await this.#files.publishLayer(layer))
    const image: Image = (await this.#files.find(id)) ?? {
      id,
      digest,
      layers,
      config: built.config,
      sizeBytes: layers.reduce((sum, layer) => sum + layer.sizeBytes, 0),
      createdAtMs: (this.#options.now ?? Date.now)(),
      source,
    }
    await this.#files.publishImage(image, context.directory)
    await this.#files.publishKey(key, id, context.directory)
    return image
  }

  #context(directory: string, run: BuildRun): BuildContext {
    const tail: string[] = []
    return {
      directory,
      signal: run.signal,
      openBlob: this.#options.openBlob,
      logTail: () => [...tail],
      log: (line) => {
        tail.push(line)
        if (tail.length > imageLimits.logLinesKept) tail.shift()
        run.log(line)
      },
    }
  }

  async #lock(name: string, signal: AbortSignal | undefined): Promise<Disposable> {
    return await acquireFileLock(this.#files.lockPath(name), signal ?? new AbortController().signal)
  }
}

async function buildFrom(
  source: ImageSource,
  context: BuildContext,
  debian: DebianOptions,
): Promise<BuiltImage> {
  switch (source.kind) {
    case 'debian':
      return await buildDebian(source, context, debian)
    case 'oci':
      return await buildOci(source, context)
    case 'directory':
    case 'tar':
      return await buildTarImage(source, context)
    default:
      throw new Error(`a source of kind ${source.kind} is refused before it comes here`)
  }
}

function asImageError(cause: unknown, source: ImageSource, directory: string): unknown {
  if (isDiskFull(cause)) return diskFull(directory, cause)
  if (!(cause instanceof TarError || cause instanceof LayerTooLarge)) return cause
  if (source.kind !== 'debian') {
    return sourceInvalid(`${cause.message}.`, 'Pack the archive again without it.', cause)
  }
  return new ImageError('image_build_failed', `mmdebstrap gave a bad archive: ${cause.message}.`, {
    hint: 'Build it again; if that fails too, look for a newer mmdebstrap.',
    cause,
  })
}
