import type { KvEntry, KvEvent, Revision } from '../kv.ts'
import { Wake } from '../wake.ts'

type KvChange = Exclude<KvEvent, { type: 'current' }>

/**
 * What one watcher has not seen yet: the latest change of each key, so that a slow one holds at most the keys that there are.
 *
 * Until `current`, changes and the entries found by listing overlap; the higher revision of a key wins.
 */
export class KvWatcher {
  readonly news = new Wake()
  readonly #prefix: string
  readonly #changes = new Map<string, KvChange>()
  /** Latest revision known of each key while the listing goes on. */
  #known: Map<string, Revision> | undefined = new Map()

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** A change that was committed; they come in order. */
  tell(change: KvChange): void {
    const key = keyOf(change)
    if (!key.startsWith(this.#prefix)) return
    this.#known?.set(key, revisionOf(change))
    // Delete first, so that the map keeps the order of the latest changes.
    this.#changes.delete(key)
    this.#changes.set(key, change)
    this.news.wake()
  }

  /** An entry that the listing gave. */
  found(entry: KvEntry): void {
    const known = this.#known?.get(entry.key)
    if (known !== undefined && known >= entry.revision) return
    this.tell({ type: 'put', entry })
  }

  /** The listing is over. */
  current(): void {
    this.#known = undefined
  }

  /** Gives, and forgets, what there is to see, also what arrives meanwhile. */
  *take(): Generator<KvChange> {
    for (const [key, change] of this.#changes) {
      this.#changes.delete(key)
      yield change
    }
    this.news.reset()
  }
}

function keyOf(change: KvChange): string {
  return change.type === 'put' ? change.entry.key : change.key
}

function revisionOf(change: KvChange): Revision {
  return change.type === 'put' ? change.entry.revision : change.revision
}
