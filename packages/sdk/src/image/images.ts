import type {
  IMAGE_EXPORT_FORMATS,
  ImagesRemoved,
  ImageVerification,
  ImageView,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import type { ImageDescription } from './image.ts'
import { type BuildOptions, buildImage } from './resolve.ts'

/** `client.images`. */
export class Images {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Builds an image, or finds the one of the same content at once. */
  async build(description: ImageDescription, options: BuildOptions = {}): Promise<ImageView> {
    refuseUnknown(options, ['onLog', 'onDetail', 'signal'])
    return await buildImage(this.#context, description, options)
  }

  /** Throws `image_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<ImageView> {
    return await this.#context.http.json('getImage', { parameters: { id }, signal })
  }

  /** All images, page by page as they are read. */
  list(waiting: Waiting = {}): AsyncGenerator<ImageView> {
    return pagesOf(this.#context, 'listImages', waiting)
  }

  /** Removes an image that nothing uses. */
  async remove(id: string, { signal }: Waiting = {}): Promise<ImagesRemoved> {
    return await this.#context.http.json('removeImage', { parameters: { id }, signal })
  }

  /** Reads all layers and compares them with their digests; no problems where all is well. */
  async verify(id: string, { signal }: Waiting = {}): Promise<ImageVerification['problems']> {
    const { problems } = await this.#context.http.json<ImageVerification>('verifyImage', {
      parameters: { id },
      signal,
    })
    return problems
  }

  /** The image as a file: an OCI archive, or (`tar`) all its files in one tar. */
  async *export(id: string, options: ExportOptions = {}): AsyncGenerator<Uint8Array> {
    refuseUnknown(options, ['format', 'signal'])
    const { format = 'oci', signal } = options
    const request = { parameters: { id }, query: { format }, signal }
    yield* this.#context.http.bytes('exportImage', request)
  }

  /**
   * Removes what nothing uses: results of steps that nobody asked for, or with `all` images as well, the longest unused first,
   * until no more than `keep` is left.
   */
  async prune(options: PruneOptions = {}): Promise<ImagesRemoved> {
    refuseUnknown(options, ['all', 'keep', 'signal'])
    const { signal, all, keep } = options
    const json = { what: all ? 'all' : 'intermediate', keep }
    return await this.#context.http.json('pruneImages', { json, signal })
  }
}

export interface ExportOptions extends Waiting {
  readonly format?: (typeof IMAGE_EXPORT_FORMATS)[number]
}

export interface PruneOptions extends Waiting {
  readonly all?: boolean
  /** A size such as `'20GiB'`, or bytes. */
  readonly keep?: string | number
}
