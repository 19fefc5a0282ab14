import type { SandboxCreateInput, SandboxState, SandboxView } from '@sandlot/protocol'
import { request, requestJson } from '../connection/http.ts'
import { type ImageLike, resolveImage } from '../image/resolve.ts'
import type { Waiting } from './files.ts'
import { Sandbox, type SandboxContext } from './sandbox.ts'

/** What a sandbox is made from and may use; `from` is an image, its description, or an id. */
export type SandboxOptions = Omit<SandboxCreateInput, 'from'> &
  Waiting & { readonly from: ImageLike }

export interface ListSandboxes extends Waiting {
  readonly state?: SandboxState
  /** Only those that have all of these tags. */
  readonly tags?: Record<string, string>
}

const PAGE_ITEMS = 500

/** `client.sandboxes`. */
export class Sandboxes {
  readonly #context: SandboxContext

  constructor(context: SandboxContext) {
    this.#context = context
  }

  /** Starts a sandbox; resolves when commands can run in it. It is yours until you stop it, or its keep-warm time is over. */
  async create(options: SandboxOptions): Promise<Sandbox> {
    const { signal, from, ...rest } = options
    const image = await resolveImage(this.#context, from, signal ? { signal } : {})
    const view = await requestJson<SandboxView>(await this.#context.endpoint(), 'createSandbox', {
      json: { ...rest, from: image },
      signal,
    })
    return new Sandbox(this.#context, view.id)
  }

  /** A handle for a sandbox that exists. Throws `sandbox_unknown`. */
  async get(id: string, options: Waiting = {}): Promise<Sandbox> {
    const parameters = { id }
    await request(await this.#context.endpoint(), 'getSandbox', {
      parameters,
      signal: options.signal,
    })
    return new Sandbox(this.#context, id)
  }

  /** All sandboxes, newest first, page by page as they are read. */
  async *list(options: ListSandboxes = {}): AsyncGenerator<SandboxView> {
    const { signal, state, tags } = options
    let after: string | null | undefined
    do {
      const query: Record<string, string | number | undefined> = {
        limit: PAGE_ITEMS,
        state,
        after: after ?? undefined,
      }
      const page: { items: SandboxView[]; next: string | null } = await requestJson(
        await this.#context.endpoint(),
        'listSandboxes',
        { query, signal },
      )
      for (const view of page.items) if (hasTags(view, tags)) yield view
      after = page.next
    } while (after)
  }

  /** Stops all sandboxes that have all of these tags; with `{}` all of the project. Returns how many. */
  async stopAll(options: ListSandboxes & { tags: Record<string, string> }): Promise<number> {
    const ids: string[] = []
    for await (const view of this.list({ ...options, state: 'running' })) ids.push(view.id)
    await Promise.all(ids.map((id) => new Sandbox(this.#context, id).stop(options)))
    return ids.length
  }
}

function hasTags(view: SandboxView, tags: Record<string, string> = {}): boolean {
  return Object.entries(tags).every(([name, value]) => view.tags[name] === value)
}
