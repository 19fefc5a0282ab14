import type { SnapshotView, Tags } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'

/** What a sandbox had become. It goes straight into `from`. */
export type Snapshot = SnapshotView

export interface ListSnapshots extends Waiting {
  /** The one of this name. */
  readonly name?: string
  /** Only those that have all of these tags. */
  readonly tags?: Tags
  /** Also those that belong to templates and the like. */
  readonly all?: boolean
}

const PAGE_ITEMS = 500

/** `client.snapshots`: what `sandbox.snapshot` made. */
export class Snapshots {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** By its id or name. Throws `snapshot_unknown`. */
  async get(id: string, { signal }: Waiting = {}): Promise<Snapshot> {
    return await this.#context.http.json('getSnapshot', { parameters: { id }, signal })
  }

  /** Oldest first, page by page as they are read. */
  list(options: ListSnapshots = {}): AsyncGenerator<Snapshot> {
    refuseUnknown(options, ['name', 'tags', 'all', 'signal'])
    const { signal, tags = {}, name, all } = options
    const tag = Object.entries(tags).map(([key, value]) => `${key}=${value}`)
    return pagesOf(this.#context, 'listSnapshots', signal ? { signal } : {}, {
      name,
      all,
      tag,
      limit: PAGE_ITEMS,
    })
  }

  /** By its id or name. Throws `snapshot_in_use`, unless `force`: then what runs goes on, and nothing more starts from it. */
  async delete(
    id: string,
    { force, signal }: Waiting & { readonly force?: boolean } = {},
  ): Promise<void> {
    const query = { ...(force ? { force } : {}) }
    await this.#context.http.send('deleteSnapshot', { parameters: { id }, query, signal })
  }
}
