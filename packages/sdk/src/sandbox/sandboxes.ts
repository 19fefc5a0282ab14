import {
  tags as allTags,
  type SandboxCreateInput,
  type SandboxState,
  type SandboxView,
  sandboxCreate,
  type Tags,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import type { LogOptions } from '../connection/logged-work.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseEarly, refuseResources } from '../connection/refuse-early.ts'
import { unlessAborted } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { type ImageLike, isDescribed, resolveImage } from '../image/resolve.ts'
import { Sandbox } from './sandbox.ts'

/** What a sandbox is made from and may use; `from` is what it starts from: an image, a snapshot, a template, or a description. */
export type SandboxOptions = Omit<SandboxCreateInput, 'from'> &
  LogOptions & { readonly from: ImageLike }

export interface ListSandboxes extends Waiting {
  /** Default: all that live. `stopped`: those that ended in the last hour. */
  readonly state?: SandboxState
  /** Only those that have all of these tags. */
  readonly tags?: Tags
}

const PAGE_ITEMS = 500
/** Sandboxes that are being stopped at once. */
const STOPS_AT_ONCE = 32

/** `client.sandboxes`. */
export class Sandboxes {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /**
   * Starts a sandbox; resolves when commands can run in it. It is yours until you stop it, or its keep-warm time is over.
   * One whose creation is aborted is stopped.
   */
  async create(options: SandboxOptions): Promise<Sandbox> {
    const { signal, onLog, onDetail, from, ...rest } = options
    if (isDescribed(from)) {
      refuseEarly(sandboxCreate, { ...rest, from: 'described' })
      refuseResources(rest.resources)
    }
    const image = await resolveImage(this.#context, from, options)
    signal?.throwIfAborted()
    // The request itself is not aborted: what it makes has to be known to be stopped.
    const created = this.#context.http
      .json<SandboxView>('createSandbox', { json: { ...rest, from: image } })
      .then(({ id }) => new Sandbox(this.#context, id))
    try {
      return await unlessAborted(created, signal)
    } catch (error) {
      if (signal?.aborted) created.then((sandbox) => sandbox.stop()).catch(() => undefined)
      throw error
    }
  }

  /** A handle for a sandbox that exists. Throws `sandbox_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<Sandbox> {
    await this.#context.http.json('getSandbox', { parameters: { id }, signal })
    return new Sandbox(this.#context, id)
  }

  /** Sandboxes, oldest first, page by page as they are read. */
  list(options: ListSandboxes = {}): AsyncGenerator<SandboxView> {
    refuseUnknown(options, ['state', 'tags', 'signal'])
    const { signal, tags = {}, state } = options
    const tag = Object.entries(tags).map(([name, value]) => `${name}=${value}`)
    return pagesOf(this.#context, 'listSandboxes', signal ? { signal } : {}, {
      state,
      tag,
      limit: PAGE_ITEMS,
    })
  }

  /** Stops all that live and have all of these tags; with `{}` all of the project. Returns how many. */
  async stopAll(options: Waiting & { readonly tags: Tags }): Promise<number> {
    refuseUnknown(options, ['tags', 'signal'])
    const { tags, signal } = options
    refuseEarly(allTags, tags, 'tags')
    const waiting = signal ? { signal } : {}
    const ids: string[] = []
    for await (const { id, state } of this.list({ ...waiting, tags })) {
      if (state !== 'stopped') ids.push(id)
    }
    for (let start = 0; start < ids.length; start += STOPS_AT_ONCE) {
      await Promise.all(
        ids.slice(start, start + STOPS_AT_ONCE).map((id) => this.#stop(id, waiting)),
      )
    }
    return ids.length
  }

  async #stop(id: string, waiting: Waiting): Promise<void> {
    try {
      await new Sandbox(this.#context, id).stop(waiting)
    } catch (error) {
      // It ended by itself meanwhile.
      if (!isCode(error, 'sandbox_unknown')) throw error
    }
  }
}
