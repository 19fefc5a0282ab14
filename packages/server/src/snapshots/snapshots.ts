import type { Engine } from '@sandlot/engine'
import { SandlotError, type SnapshotView } from '@sandlot/protocol'
import type { ImageStore, PinnedImage } from '@sandlot/runtime'
import { decodeJson, encodeJson } from '../json.ts'
import { type SnapshotRecord, snapshotRecord } from './record.ts'

const PREFIX = 'snapshot/'

export interface SnapshotsOptions {
  readonly engine: Engine
  readonly images: ImageStore
  /** How many sandboxes live that were started from an image. */
  readonly uses: (image: string) => number
  readonly log: { warn(about: object, message: string): void }
}

/**
 * The records of snapshots. Each keeps its image from being removed or collected. A name is its newest snapshot's: the one that
 * had it before goes on without.
 */
export class Snapshots {
  readonly #options: SnapshotsOptions
  readonly #pins = new Map<string, PinnedImage>()

  private constructor(options: SnapshotsOptions) {
    this.#options = options
  }

  /** A record whose image is gone, by another hand than this daemon's, is forgotten: nothing could start from it. */
  static async open(options: SnapshotsOptions): Promise<Snapshots> {
    const snapshots = new Snapshots(options)
    for await (const record of snapshots.#all('')) {
      if (await snapshots.#keep(record)) continue
      options.log.warn(
        { snapshot: record.id, image: record.image },
        'a snapshot has lost its image',
      )
      await snapshots.#forget(record)
    }
    return snapshots
  }

  /** From now on it can be started from. */
  async add(record: SnapshotRecord): Promise<SnapshotRecord> {
    await this.#keep(record)
    if (record.name !== undefined) await this.#takeName(record.project, record.name)
    await this.#put(record)
    return record
  }

  /** Throws `snapshot_unknown`. */
  async get(project: string, id: string): Promise<SnapshotRecord> {
    const entry = await this.#options.engine.kv.get(keyOf(project, id))
    if (entry) return snapshotRecord.parse(decodeJson(entry.value))
    const shown = JSON.stringify(id.slice(0, 64))
    throw new SandlotError('snapshot_unknown', `there is no snapshot ${shown}`)
  }

  /** Oldest first. */
  async list(project: string, name?: string): Promise<readonly SnapshotRecord[]> {
    const records: SnapshotRecord[] = []
    for await (const record of this.#all(`${project}/`)) {
      if (name === undefined || record.name === name) records.push(record)
    }
    return records.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }

  /**
   * Forgets a snapshot and removes the image that nothing else has. Sandboxes that were started from it go on, and keep its files until
   * they end. Throws `snapshot_in_use` without `force` while there are any.
   */
  async remove(project: string, id: string, force: boolean): Promise<SnapshotRecord> {
    const record = await this.get(project, id)
    const uses = this.#options.uses(record.image)
    if (uses > 0 && !force) {
      const many = uses === 1 ? 'a sandbox lives' : `${uses} sandboxes live`
      throw new SandlotError('snapshot_in_use', `${many} that started from ${id}`)
    }
    await this.#forget(record)
    // Others may have it: a snapshot of the same content, a sandbox, a template.
    if (record.image !== record.parent && uses === 0) {
      await this.#options.images.remove(record.image).catch(() => {})
    }
    return record
  }

  async view(record: SnapshotRecord): Promise<SnapshotView> {
    const usedAtMs = await this.#options.images.usedAtMs(record.image).catch(() => undefined)
    const used = usedAtMs !== undefined && usedAtMs > record.createdAtMs
    return { ...record, ...(used ? { lastUsedAtMs: usedAtMs } : {}) }
  }

  async #takeName(project: string, name: string): Promise<void> {
    for (const record of await this.list(project, name)) {
      const { name: _, ...unnamed } = record
      await this.#put(unnamed)
    }
  }

  async #put(record: SnapshotRecord): Promise<void> {
    await this.#options.engine.kv.put(keyOf(record.project, record.id), encodeJson(record))
  }

  async *#all(below: string): AsyncGenerator<SnapshotRecord> {
    for (let after: string | undefined; ; ) {
      const options = after === undefined ? {} : { after }
      const page = await this.#options.engine.kv.list(PREFIX + below, options)
      for (const entry of page.entries) yield snapshotRecord.parse(decodeJson(entry.value))
      after = page.next
      if (after === undefined) return
    }
  }

  /** False where its image is gone. */
  async #keep({ project, id, image }: SnapshotRecord): Promise<boolean> {
    const { images } = this.#options
    if (!(await images.find(image))) return false
    this.#pins.set(keyOf(project, id), await images.pin(image))
    return true
  }

  async #forget({ project, id }: SnapshotRecord): Promise<void> {
    const key = keyOf(project, id)
    await this.#options.engine.kv.delete(key)
    this.#pins.get(key)?.[Symbol.dispose]()
    this.#pins.delete(key)
  }
}

function keyOf(project: string, id: string): string {
  return `${PREFIX}${project}/${id}`
}
