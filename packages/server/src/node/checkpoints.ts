import { access, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'

/**
 * Saved memory of this node's sandboxes, a directory each, named after what it is of:
 *
 * | name | of | until |
 * |---|---|---|
 * | `sb_…` | a paused sandbox | it was resumed, or ended |
 * | `sn_…` | a snapshot | that is deleted |
 * | anything else | copies being made | they are made |
 *
 * One that is removed while something starts from it goes when that is over; nothing more starts from it.
 */
export class Checkpoints {
  readonly #directory: string
  readonly #held = new Map<string, number>()
  readonly #removed = new Set<string>()
  /** Found to be there by whoever started from it before. */
  readonly #seen = new Set<string>()
  /** Told of each that goes, before its files do: resolves when nothing that waits is of it any more. */
  onRemove: ((name: string) => Promise<void>) | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  path(name: string): string {
    return join(this.#directory, name)
  }

  /** Whether it is there; then it is whole. */
  async has(name: string): Promise<boolean> {
    return access(this.path(name)).then(
      () => true,
      () => false,
    )
  }

  /**
   * Keeps it on disk until disposed: something starts from it.
   * @throws SandlotError `snapshot_unknown` where it was removed
   */
  async hold(name: string): Promise<Disposable> {
    const isThere = this.#seen.has(name) || (await this.has(name))
    if (!isThere || this.#removed.has(name)) throw deleted()
    this.#seen.add(name)
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
    let over = false
    return {
      [Symbol.dispose]: () => {
        if (!over) this.#letGo(name)
        over = true
      },
    }
  }

  /** Of all its files. */
  async sizeBytes(name: string): Promise<number> {
    const files = await readdir(this.path(name))
    const sizes = files.map(async (file) => (await stat(join(this.path(name), file))).size)
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }

  /** Whether copies of it may be wanted at any time. */
  isSnapshot(name: string): boolean {
    return SNAPSHOT.test(name)
  }

  /** Idempotent. */
  async remove(name: string): Promise<void> {
    // From here on nothing more starts from it.
    this.#removed.add(name)
    this.#seen.delete(name)
    await this.onRemove?.(name)
    if (this.#held.has(name)) return
    await rm(this.path(name), { recursive: true, force: true })
    this.#removed.delete(name)
  }

  #letGo(name: string): void {
    const left = (this.#held.get(name) ?? 0) - 1
    if (left > 0) return void this.#held.set(name, left)
    this.#held.delete(name)
    if (!this.#removed.has(name)) return
    // What can't be removed now the next daemon removes.
    void this.remove(name).catch(() => {})
  }

  /** Removes the memory of snapshots that nobody knows. */
  async removeUnknown(snapshots: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#directory).catch(() => [])
    for (const name of names) {
      if (SNAPSHOT.test(name) && !snapshots.has(name)) await this.remove(name)
    }
  }

  /** Removes what no daemon will ask for: what is half made, what was for copies, and of the sandboxes all but the paused ones. */
  async sweep(paused: ReadonlySet<string>): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    for (const name of await readdir(this.#directory)) {
      const kept = paused.has(name) || SNAPSHOT.test(name)
      if (!kept) await this.remove(name)
    }
  }
}

function deleted(): SandlotError {
  return new SandlotError('snapshot_unknown', 'the saved memory to start from was deleted')
}

const SNAPSHOT = /^sn_[^.]*$/
