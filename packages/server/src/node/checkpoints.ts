import { access, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Saved memory of this node's sandboxes, a directory each, named after what it is of:
 *
 * | name | of | until |
 * |---|---|---|
 * | `sb_…` | a paused sandbox | it was resumed, or ended |
 * | `sn_…` | a snapshot | that is deleted |
 * | anything else | copies being made | they are made |
 */
export class Checkpoints {
  readonly #directory: string

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

  /** Idempotent. */
  async remove(name: string): Promise<void> {
    await rm(this.path(name), { recursive: true, force: true })
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

const SNAPSHOT = /^sn_[^.]*$/
