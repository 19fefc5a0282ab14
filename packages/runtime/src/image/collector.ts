import { imagesToCollect } from './collection.ts'
import type { Image } from './image.ts'
import type { ImageFiles } from './image-files.ts'
import { imageLimits } from './limits.ts'
import type { Pins } from './pins.ts'

export interface Collected {
  readonly images: readonly Image[]
  readonly freedBytes: number
}

export interface CollectorOptions {
  readonly files: ImageFiles
  readonly pins: Pins
  /** Undefined: there is no limit. */
  readonly sizeBytesMax: number | undefined
}

interface CollectWait {
  readonly signal?: AbortSignal | undefined
}

/** Removes what nothing uses. Images are looked at and removed under the lock of the store. */
export class ImageCollector {
  readonly #options: CollectorOptions
  readonly #removing = new Set<string>()
  readonly #closing = new AbortController()
  #collecting: Promise<unknown> | undefined

  constructor(options: CollectorOptions) {
    this.#options = options
  }

  isRemoving(id: string): boolean {
    return this.#removing.has(id)
  }

  async collect(sizeBytesMax: number, wait: CollectWait = {}): Promise<Collected> {
    return await this.#collect({ sizeBytesMax, usedBeforeMs: Number.POSITIVE_INFINITY }, wait)
  }

  async collectIntermediate(wait: CollectWait = {}): Promise<Collected> {
    using _lock = await this.#lock(wait.signal)
    const all = await this.#options.files.list()
    return await this.remove(all.filter(({ intermediate }) => intermediate))
  }

  /** Not waited for by a build. One at a time; it fails without a word, since the next build asks again. */
  collectSoon(): void {
    const { sizeBytesMax } = this.#options
    if (sizeBytesMax === undefined || this.#closing.signal.aborted) return
    const usedBeforeMs = Date.now() - imageLimits.collectedAfterMs
    this.#collecting ??= this.#collect({ sizeBytesMax, usedBeforeMs }, this.#closing)
      .catch(() => {})
      .finally(() => {
        this.#collecting = undefined
      })
  }

  /** Only with the lock of the store. What is pinned stays; joined forms go with what they are forms of. */
  async remove(images: readonly Image[]): Promise<Collected> {
    const forms = await this.#formsWithout(images)
    const gone = [...images, ...forms].filter(({ id }) => !this.#options.pins.has(id))
    for (const { id } of gone) this.#removing.add(id)
    try {
      return { images: gone, ...(await this.#options.files.remove(gone)) }
    } finally {
      for (const { id } of gone) this.#removing.delete(id)
    }
  }

  /** Joined forms of these images, and of those that are gone already. */
  async #formsWithout(images: readonly Image[]): Promise<readonly Image[]> {
    const all = await this.#options.files.list()
    const removed = new Set(images.map(({ id }) => id))
    const left = new Set(all.map(({ id }) => id).filter((id) => !removed.has(id)))
    return all.filter(
      ({ id, joinedOf }) => joinedOf !== undefined && !left.has(joinedOf) && !removed.has(id),
    )
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the image store is closing'))
    await this.#collecting
  }

  async #collect(
    room: { readonly sizeBytesMax: number; readonly usedBeforeMs: number },
    wait: CollectWait,
  ): Promise<Collected> {
    const { files, pins } = this.#options
    using _lock = await this.#lock(wait.signal)
    const candidates = []
    for (const image of await files.list()) {
      candidates.push({ image, usedAtMs: await files.usedAtMs(image.id) })
    }
    return await this.remove(
      imagesToCollect(candidates, { ...room, isPinned: (id) => pins.has(id) }),
    )
  }

  async #lock(signal: AbortSignal | undefined): Promise<Disposable> {
    const { files } = this.#options
    return await files.lockStore(signal ?? this.#closing.signal)
  }
}
