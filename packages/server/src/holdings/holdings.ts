/**
 * Which project holds what all of them share: images are stored once, whoever builds them, and so are contents. A project sees, reads
 * and starts from what it holds alone: what it built or sent itself, or what the daemon made for it. To know a digest gives no right.
 *
 * ```
 * alone   one project, `default`: it holds everything, nothing is written down
 *    │ share(): the first key of another project
 *    ▼
 * shared  kv held/<kind>/<id>/<project>; never back
 * ```
 * What came before `shared` is `default`'s: its images are written down then, and a content without any holder is its own.
 */
import type { Engine } from '@sandlot/engine'
import { SERVER_LIMITS } from '../limits.ts'

export type HeldKind = 'image' | 'blob'

export interface HoldingsOptions {
  readonly kv: Engine['kv']
  /** Ids of all images that are there. */
  readonly images: () => Promise<readonly string[]>
}

export class Holdings {
  readonly #options: HoldingsOptions
  /** Names in the kv store of what was found or written, the oldest first. */
  readonly #known = new Set<string>()
  #shared: boolean

  private constructor(options: HoldingsOptions, shared: boolean) {
    this.#options = options
    this.#shared = shared
  }

  static async open(options: HoldingsOptions): Promise<Holdings> {
    return new Holdings(options, (await options.kv.get(SHARED)) !== undefined)
  }

  /** Whether there ever was another project. */
  get isShared(): boolean {
    return this.#shared
  }

  /** From now on each has its own. Idempotent; what a crash cuts off is done again. */
  async share(): Promise<void> {
    if (this.#shared) return
    for (const image of await this.#options.images()) await this.#write('image', image, FIRST)
    await this.#options.kv.put(SHARED, NOTHING)
    this.#shared = true
  }

  async holds(kind: HeldKind, project: string, id: string): Promise<boolean> {
    if (!this.#shared) return true
    const name = nameOf(kind, id, project)
    if (this.#known.has(name)) return true
    if ((await this.#options.kv.get(name)) !== undefined) {
      this.#remember(name)
      return true
    }
    return kind === 'blob' && project === FIRST && !(await this.#isHeld(kind, id))
  }

  /** `wasThere`: of a content, whether it was stored before. */
  async add(kind: HeldKind, project: string, id: string, wasThere = false): Promise<void> {
    if (!this.#shared || this.#known.has(nameOf(kind, id, project))) return
    if (kind === 'blob' && wasThere && project !== FIRST && !(await this.#isHeld(kind, id))) {
      await this.#write(kind, id, FIRST)
    }
    await this.#write(kind, id, project)
  }

  async isHeldByOthers(kind: HeldKind, project: string, id: string): Promise<boolean> {
    if (!this.#shared) return false
    const { entries } = await this.#options.kv.list(nameOf(kind, id, ''), { limit: 2 })
    return entries.some(({ key }) => key !== nameOf(kind, id, project))
  }

  async drop(kind: HeldKind, project: string, id: string): Promise<void> {
    if (!this.#shared) return
    const name = nameOf(kind, id, project)
    this.#known.delete(name)
    await this.#options.kv.delete(name)
  }

  /** Forgets who held what is gone. Page by page: there may be many. */
  async sweep(
    kind: HeldKind,
    isThere: (id: string) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<void> {
    const prefix = `held/${kind}/`
    for (let after: string | undefined; this.#shared; ) {
      const page = await this.#options.kv.list(prefix, after === undefined ? {} : { after })
      for (const { key } of page.entries) {
        signal.throwIfAborted()
        const id = key.slice(prefix.length, key.lastIndexOf('/'))
        if (await isThere(id)) continue
        this.#known.delete(key)
        await this.#options.kv.delete(key)
      }
      after = page.next
      if (after === undefined) return
    }
  }

  async #isHeld(kind: HeldKind, id: string): Promise<boolean> {
    const { entries } = await this.#options.kv.list(nameOf(kind, id, ''), { limit: 1 })
    return entries.length > 0
  }

  async #write(kind: HeldKind, id: string, project: string): Promise<void> {
    const name = nameOf(kind, id, project)
    await this.#options.kv.put(name, NOTHING)
    this.#remember(name)
  }

  #remember(name: string): void {
    this.#known.add(name)
    if (this.#known.size <= SERVER_LIMITS.holdingsKnown) return
    for (const oldest of this.#known) {
      this.#known.delete(oldest)
      return
    }
  }
}

/** The project that was there before all others. */
const FIRST = 'default'
const SHARED = 'held/shared'
const NOTHING = new Uint8Array()

function nameOf(kind: HeldKind, id: string, project: string): string {
  return `held/${kind}/${id}/${project}`
}
