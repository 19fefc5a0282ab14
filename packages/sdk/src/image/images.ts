import type { ImageView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
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
    return await buildImage(this.#context, description, options)
  }

  /** Throws `image_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<ImageView> {
    return await this.#context.http.json('getImage', { parameters: { id }, signal })
  }

  /** All images, page by page as they are read. */
  async *list({ signal }: Waiting = {}): AsyncGenerator<ImageView> {
    let after: string | undefined
    do {
      const page: { items: ImageView[]; next: string | null } = await this.#context.http.json(
        'listImages',
        { query: { after }, signal },
      )
      yield* page.items
      after = page.next ?? undefined
    } while (after)
  }

  /** Removes an image that nothing uses. */
  async remove(id: string, { signal }: Waiting = {}): Promise<void> {
    await this.#context.http.send('removeImage', { parameters: { id }, signal })
  }
}
