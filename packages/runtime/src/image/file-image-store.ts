import type { ImageSource } from '@sandlot/protocol'
import { registryOptions } from '../config.ts'
import { ImageBuilder } from './builder.ts'
import { type Collected, ImageCollector } from './collector.ts'
import { extendImage } from './difference-image.ts'
import { type ExportFormat, exported } from './export/export.ts'
import type { Image } from './image.ts'
import { ImageError, imageUnknown } from './image-error.ts'
import { fileDigest, type ImageFiles } from './image-files.ts'
import { ImageTrees } from './image-trees.ts'
import { LayerJoiner } from './layer-joiner.ts'
import { imageLimits } from './limits.ts'
import { NodeImages } from './node/node-images.ts'
import { Pins } from './pins.ts'
import type { RegistryOptions } from './registry.ts'
import { resolvedSource } from './resolve.ts'
import { normalizedSource } from './source.ts'
import type {
  ExtendRequest,
  ImageStore,
  ImageStoreOptions,
  ImageWait,
  LayerProblem,
  PinnedImage,
  SourceWait,
} from './store.ts'

/** The store over its files. */
export class FileImageStore implements ImageStore {
  readonly #options: ImageStoreOptions
  readonly #files: ImageFiles
  readonly #pins = new Pins()
  readonly #collector: ImageCollector
  readonly #joiner: LayerJoiner
  readonly #registry: RegistryOptions
  readonly #builder: ImageBuilder
  readonly #nodeImages: NodeImages
  readonly #closing = new AbortController()

  constructor(options: ImageStoreOptions, files: ImageFiles) {
    this.#options = options
    this.#files = files
    this.#nodeImages = new NodeImages({
      files,
      now: options.now ?? Date.now,
      executable: options.nodeExecutable ?? process.execPath,
      closing: this.#closing.signal,
    })
    this.#registry = options.registry ?? registryOptions()
    const { sizeBytesMax } = options
    this.#collector = new ImageCollector({ files, pins: this.#pins, sizeBytesMax })
    this.#joiner = new LayerJoiner({ files, now: options.now ?? Date.now })
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
      resolveId: wait.resolveId ?? imagesAlone,
      project: wait.project ?? '',
      signal: wait.signal ?? this.#closing.signal,
    })
    const image = await this.#builder.image(resolved, wait)
    this.#files.touch(image.id)
    if (image.layers.length > imageLimits.layersKept) this.#joiner.joinSoon(image)
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
    if (image.layers.length > imageLimits.layersSaved) this.#joiner.joinSoon(image)
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
    return all.filter(
      ({ intermediate, joinedOf, source }) =>
        !intermediate && joinedOf === undefined && source.kind !== 'id',
    )
  }

  async listExtended(): Promise<readonly Image[]> {
    const all = await this.#files.list()
    const ids = new Set(all.map(({ id }) => id))
    return all.filter(({ intermediate, joinedOf, source }) =>
      joinedOf === undefined ? source.kind === 'id' && !intermediate : !ids.has(joinedOf),
    )
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

  async pinForStart(id: string): Promise<PinnedImage> {
    const whole = await this.pin(id)
    const { image } = whole
    if (image.layers.length <= imageLimits.layersKept || image.intermediate) return whole
    const form = await this.#joiner.find(id)
    const pinned = form && (await this.pin(form.id).catch(() => undefined))
    if (pinned) return both(pinned, whole)
    if (image.source.kind !== 'id' || image.layers.length > imageLimits.layersSaved) {
      this.#joiner.joinSoon(image)
    }
    return whole
  }

  async withNode(id: string | undefined, wait: ImageWait = {}): Promise<Image> {
    const { signal: closing } = this.#closing
    const signal = wait.signal ? AbortSignal.any([wait.signal, closing]) : closing
    const parent = id === undefined ? await this.#nodeImages.base(signal) : await this.get(id)
    using _pin = this.#pins.hold(parent.id)
    const image = await this.#nodeImages.over(parent, signal)
    this.#files.touch(image.id)
    return image
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
    const { layers } = await this.get(id)
    const joined = (await this.#joiner.find(id))?.layers.at(-1)
    for (const { digest, path } of joined ? [...layers, joined] : layers) {
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
    await this.#joiner.close()
    await this.#collector.close()
  }

  async #lock(signal: AbortSignal | undefined): Promise<Disposable> {
    return await this.#files.lockStore(signal ?? this.#closing.signal)
  }
}

/** The first, for as long as the second is kept too. */
function both(first: PinnedImage, second: PinnedImage): PinnedImage {
  return {
    image: first.image,
    [Symbol.dispose]: () => {
      first[Symbol.dispose]()
      second[Symbol.dispose]()
    },
  }
}

async function noMachine(): Promise<never> {
  throw new ImageError('image_build_failed', 'This image store has no sandboxes to run steps in.', {
    hint: 'Build it by a daemon.',
  })
}

async function imagesAlone(id: string): Promise<string> {
  if (id.startsWith('im_')) return id
  throw new ImageError('image_unknown', `There is no ${JSON.stringify(id)}.`, {
    hint: 'Name an image, a snapshot or a template that this daemon has.',
  })
}
