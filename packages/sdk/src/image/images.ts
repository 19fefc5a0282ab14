import type { ImageView } from '@sandlot/protocol'
import { request, requestJson } from '../connection/http.ts'
import type { Waiting } from '../sandbox/files.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'
import type { ImageDescription } from './image.ts'
import { type BuildOptions, buildImage } from './resolve.ts'

/** `client.images`. */
export class Images {
  readonly #context: SandboxContext

  constructor(context: SandboxContext) {
    this.#context = context
  }

  /** Builds an image, or finds the one of the same content at once. */
  async build(description: ImageDescription, options: BuildOptions = {}): Promise<ImageView> {
    return await buildImage(this.#context, description, options)
  }

  /** Throws `image_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<ImageView> {
    return await requestJson(await this.#context.endpoint(), 'getImage', {
      parameters: { id },
      signal,
    })
  }

  async *list({ signal }: Waiting = {}): AsyncGenerator<ImageView> {
    let after: string | undefined
    do {
      const page: { items: ImageView[]; next: string | null } = await requestJson(
        await this.#context.endpoint(),
        'listImages',
        { query: { after }, signal },
      )
      yield* page.items
      after = page.next ?? undefined
    } while (after)
  }

  /** Removes an image that nothing uses. */
  async remove(id: string, { signal }: Waiting = {}): Promise<void> {
    await request(await this.#context.endpoint(), 'removeImage', { parameters: { id }, signal })
  }
}
