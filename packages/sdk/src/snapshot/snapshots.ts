import type { SnapshotView, Tags } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'

/** What a sandbox had become. It goes straight into `from`. */
export type Snapshot = SnapshotView

export interface ListSnapshots extends Waiting {
  /** The one of this name. */
  readonly name?: string
  /** Only those that have all of these tags. */
  readonly tags?: Tags
}

const PAGE_ITEMS = 500

/** `client.snapshots`: what `sandbox.snapshot` made. */
export class Snapshots {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Throws `snapshot_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<Snapshot> {
    return await this.#context.http.json('getSnapshot', { parameters: { id }, signal })
  }

  /** Oldest first, page by page as they are read. */
  async *list(options: ListSnapshots = {}): AsyncGenerator<Snapshot> {
    const { signal, name, tags = {} } = options
    const tag = Object.entries(tags).map(([key, value]) => `${key}=${value}`)
    let after: string | undefined
    do {
      const page: { items: Snapshot[]; next: string | null } = await this.#context.http.json(
        'listSnapshots',
        { query: { limit: PAGE_ITEMS, name, tag, after }, signal },
      )
      yield* page.items
      after = page.next ?? undefined
    } while (after)
  }

  /** Throws `snapshot_in_use`, unless `force`: then what runs goes on, and nothing more starts from it. */
  async delete(
    id: string,
    { force, signal }: Waiting & { readonly force?: boolean } = {},
  ): Promise<void> {
    const query = { ...(force ? { force } : {}) }
    await this.#context.http.send('deleteSnapshot', { parameters: { id }, query, signal })
  }
}
