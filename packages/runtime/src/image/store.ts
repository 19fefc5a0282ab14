import type { ImageSource } from '@sandlot/protocol'
import { registryOptions } from '../config.ts'
import type { HasBlob, OpenBlob } from './build.ts'
import { ImageBuilder } from './builder.ts'
import { type Collected, ImageCollector } from './collector.ts'
import type { DebianOptions } from './debian.ts'
import { extendImage } from './difference-image.ts'
import { type ExportFormat, exported } from './export/export.ts'
import type { Image } from './image.ts'
import { ImageError, imageUnknown } from './image-error.ts'
import { fileDigest, ImageFiles } from './image-files.ts'
import { ImageTrees } from './image-trees.ts'
import { Pins } from './pins.ts'
import type { RegistryOptions } from './registry.ts'
import { type ResolveId, resolvedSource } from './resolve.ts'
import type { BuildWait } from './shared-builds.ts'
import { normalizedSource } from './source.ts'
import type { OpenStepMachine } from './steps/machine.ts'

/**
 * The images of this machine. Several processes may have the same directory open: a source is built once, whoever asks.
 */
export interface ImageStore extends AsyncDisposable {
  /**
   * The image of a source, built when it is not here yet. Building is shared by all who ask for the same source; it is given
   * up when the last of them is aborted, and then leaves nothing but steps that were done. `onLog` gets the lines of the build, none
   * when nothing had to be built. Fails with `blob_unknown`, which names all contents that it lacks, before anything runs; with `image_source_invalid`, `image_build_failed`, `registry_…`, `disk_full`, or as
   * `openBlob` and `openMachine` do.
   */
  build(source: ImageSource, wait?: SourceWait): Promise<Image>

  /**
   * An image with one layer more: what a sandbox of the parent changed, as the tar that its guest's `difference` gives. Without any
   * change it is the parent. Fails with `image_unknown`, `image_source_invalid` where what the guest sent can't be stored,
   * `disk_full`, or as the stream does; then nothing is left.
   */
  extend(request: ExtendRequest, wait?: ImageWait): Promise<Image>

  /** Fails with `image_unknown`. */
  get(id: string): Promise<Image>
  find(id: string): Promise<Image | undefined>
  /** Oldest first, without intermediate results and without those that came out of sandboxes. */
  list(): Promise<readonly Image[]>
  /** Those that came out of sandboxes. */
  listExtended(): Promise<readonly Image[]>
  /** When an image was used last, or made. Milliseconds since 1970. */
  usedAtMs(id: string): Promise<number>

  /**
   * Keeps an image from being removed while something uses it. Pins end with this process; while there is one of an image,
   * the next ones read no file. Fails with `image_unknown`.
   */
  pin(id: string): Promise<PinnedImage>

  /** Removes an image and the layers that no other image has. Fails with `image_unknown` or `image_in_use`. */
  remove(id: string, wait?: ImageWait): Promise<Collected>

  /** Removes what nothing uses, the longest unused first, until no more than so many bytes are left. */
  collect(sizeBytesMax: number, wait?: ImageWait): Promise<Collected>

  /** Removes the intermediate results of builds that nothing uses. */
  collectIntermediate(wait?: ImageWait): Promise<Collected>

  /** The image as a file for other programs; it is kept meanwhile. Fails with `image_unknown`. */
  export(id: string, format: ExportFormat): AsyncGenerator<Uint8Array>

  /** Reads all layers and compares them with their digests. Fails with `image_unknown`. */
  verify(id: string, wait?: ImageWait): Promise<readonly LayerProblem[]>

  /** Gives up what is being built. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface SourceWait extends BuildWait {
  /** What ids of snapshots and templates stand for, to who asks. Default: there are none. */
  readonly resolveId?: ResolveId
  /** Who asks: functions of one project are not those of another. */
  readonly project?: string
}

export interface ImageWait {
  readonly signal?: AbortSignal | undefined
}

export interface PinnedImage extends Disposable {
  readonly image: Image
}

export interface ExtendRequest {
  /** Id of an image. */
  readonly parent: string
  /** Read once. */
  readonly difference: AsyncIterable<Uint8Array>
  /** Gets what of it the image can't have, such as extended attributes: a line each, a bounded number. */
  readonly onWarning?: (line: string) => void
}

export interface LayerProblem {
  readonly digest: string
  readonly problem: 'missing' | 'damaged'
}

export interface ImageStoreOptions {
  /** Everything the store has lies below it. Made when missing. */
  readonly directory: string
  readonly openBlob: OpenBlob
  /** Default: all are, until one is opened. */
  readonly hasBlob?: HasBlob
  readonly debian?: DebianOptions
  /** Default: skopeo with this machine's settings. */
  readonly registry?: RegistryOptions
  /** Where steps run. Without it, builds whose steps run something are refused. */
  readonly openMachine?: OpenStepMachine
  /** The longest unused go when all layers together take more. Default: no limit. */
  readonly sizeBytesMax?: number
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

export async function openImageStore(options: ImageStoreOptions): Promise<ImageStore> {
  return new FileImageStore(options, await ImageFiles.open(options.directory))
}

class FileImageStore implements ImageStore {
  readonly #options: ImageStoreOptions
  readonly #files: ImageFiles
  readonly #pins = new Pins()
  readonly #collector: ImageCollector
  readonly #registry: RegistryOptions
  readonly #builder: ImageBuilder
  readonly #closing = new AbortController()

  constructor(options: ImageStoreOptions, files: ImageFiles) {
    this.#options = options
    this.#files = files
    this.#registry = options.registry ?? registryOptions()
    const { sizeBytesMax } = options
    this.#collector = new ImageCollector({ files, pins: this.#pins, sizeBytesMax })
    this.#builder = new ImageBuilder({
      files,
      pins: this.#pins,
      openBlob: options.openBlob,
      hasBlob: options.hasBlob ?? (async () => true),
      debian: options.debian ?? {},
      registry: this.#registry,
      openMachine: options.openMachine ?? noMachine,
      now: options.now ?? Date.now,
      onPublished: () => this.#collector.collectSoon(),
    })
  }

  async build(source: ImageSource, wait: SourceWait = {}): Promise<Image> {
    const resolved = await resolvedSource(normalizedSource(source), {
      registry: this.#registry,
      resolveId: async (id, { signal }) =>
        id.startsWith('im_') ? id : await (wait.resolveId ?? noId)(id, { signal }),
      project: wait.project ?? '',
      signal: wait.signal ?? this.#closing.signal,
    })
    const image = await this.#builder.image(resolved, wait)
    this.#files.touch(image.id)
    return image
  }

  async extend(
    { parent, difference, onWarning }: ExtendRequest,
    wait: ImageWait = {},
  ): Promise<Image> {
    using pinned = await this.pin(parent)
    const { signal: closing } = this.#closing
    const image = await extendImage(pinned.image, difference, {
      files: this.#files,
      now: this.#options.now ?? Date.now,
      signal: wait.signal ? AbortSignal.any([wait.signal, closing]) : closing,
      onWarning: onWarning ?? (() => {}),
    })
    this.#collector.collectSoon()
    return image
  }

  async get(id: string): Promise<Image> {
    const image = await this.find(id)
    if (image) return image
    throw imageUnknown(id)
  }

  async find(id: string): Promise<Image | undefined> {
    return await this.#files.find(id)
  }

  async list(): Promise<readonly Image[]> {
    const all = await this.#files.list()
    return all.filter(({ intermediate, source }) => !intermediate && source.kind !== 'id')
  }

  async listExtended(): Promise<readonly Image[]> {
    return (await this.#files.list()).filter(({ source }) => source.kind === 'id')
  }

  async usedAtMs(id: string): Promise<number> {
    return await this.#files.usedAtMs(id)
  }

  async pin(id: string): Promise<PinnedImage> {
    if (this.#collector.isRemoving(id))
      return { image: await this.get(id), [Symbol.dispose]: () => {} }
    const held = this.#pins.hold(id)
    try {
      held.pinned.image ??= await this.get(id)
      this.#files.touch(id)
      return { image: held.pinned.image, [Symbol.dispose]: () => held[Symbol.dispose]() }
    } catch (cause) {
      held[Symbol.dispose]()
      throw cause
    }
  }

  async remove(id: string, wait: ImageWait = {}): Promise<Collected> {
    await this.get(id)
    using _lock = await this.#lock(wait.signal)
    if (this.#pins.has(id)) {
      throw new ImageError('image_in_use', `Image ${id} is in use.`, {
        hint: 'Stop the sandboxes that were made from it, then remove it.',
      })
    }
    return await this.#collector.remove([await this.get(id)])
  }

  async collect(sizeBytesMax: number, wait: ImageWait = {}): Promise<Collected> {
    return await this.#collector.collect(sizeBytesMax, wait)
  }

  async collectIntermediate(wait: ImageWait = {}): Promise<Collected> {
    return await this.#collector.collectIntermediate(wait)
  }

  async *export(id: string, format: ExportFormat): AsyncGenerator<Uint8Array> {
    using pinned = await this.pin(id)
    yield* exported(pinned.image, format, new ImageTrees())
  }

  async verify(id: string, wait: ImageWait = {}): Promise<readonly LayerProblem[]> {
    const problems: LayerProblem[] = []
    for (const { digest, path } of (await this.get(id)).layers) {
      wait.signal?.throwIfAborted()
      const found = await fileDigest(path).catch(() => undefined)
      if (found === undefined) problems.push({ digest, problem: 'missing' })
      else if (found !== digest) problems.push({ digest, problem: 'damaged' })
    }
    return problems
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new Error('the image store is closing')
    this.#closing.abort(reason)
    await this.#builder.close(reason)
    await this.#collector.close()
  }

  async #lock(signal: AbortSignal | undefined): Promise<Disposable> {
    return await this.#files.lockStore(signal ?? this.#closing.signal)
  }
}

async function noMachine(): Promise<never> {
  throw new ImageError('image_build_failed', 'This image store has no sandboxes to run steps in.', {
    hint: 'Build it by a daemon.',
  })
}

async function noId(id: string): Promise<never> {
  throw new ImageError('image_unknown', `There is no ${JSON.stringify(id)}.`, {
    hint: 'Name an image, a snapshot or a template that this daemon has.',
  })
}
