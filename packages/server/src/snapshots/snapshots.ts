import { type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError, type SnapshotView } from '@sandlot/protocol'
import type { ImageStore, PinnedImage } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Checkpoints } from '../node/checkpoints.ts'
import type { SnapshotRecord } from './record.ts'
import { keyOf, pinAll, pinAllThere, readAll, type SnapshotRemnant, unreadable } from './stored.ts'

export interface SnapshotsOptions {
  readonly engine: Engine
  readonly images: ImageStore
  readonly checkpoints: Checkpoints
  /** What else keeps a snapshot from being deleted, in a few words; undefined where nothing does. */
  readonly user: (record: SnapshotRecord) => string | undefined
  readonly now: () => number
  readonly log: Pick<Logger, 'warn' | 'error'>
}

/** A snapshot that something is about to start from: until disposed all that it names stays. */
export interface UsedSnapshot extends Disposable {
  readonly record: SnapshotRecord
}

/**
 * The records of snapshots. Each keeps its image from being removed or collected. A name is its newest snapshot's: the one that
 * had it before goes on without. A record is written when all it names is there, and goes before its image does: so one that
 * is found can be started from, and what a killed daemon leaves is an image without a record, which goes at the next start.
 */
export class Snapshots {
  readonly #options: SnapshotsOptions
  readonly #records = new Map<string, SnapshotRecord>()
  /** Those that this version can't read. */
  readonly #remnants = new Map<string, SnapshotRemnant>()
  readonly #pins = new Map<string, readonly PinnedImage[]>()
  /** How often each is about to be started from. */
  readonly #uses = new Map<string, number>()
  /** Images may be there that have no record yet. */
  #making = 0
  /** Of images, under way. */
  readonly #removals = new Set<Promise<unknown>>()
  /** How often it was asked to reap since that was begun. */
  #asked = 0

  private constructor(options: SnapshotsOptions) {
    this.#options = options
  }

  /**
   * A record whose image or memory is gone, by another hand than this daemon's, is forgotten: nothing could start from it. One that
   * this version can't read is kept, with all that it names. Memory without a record goes.
   */
  static async open(options: SnapshotsOptions): Promise<Snapshots> {
    const snapshots = new Snapshots(options)
    const { engine, checkpoints, log } = options
    const { records, remnants } = await readAll(engine)
    for (const record of records) {
      const { id, image } = record
      const whole = record.memory === undefined || (await checkpoints.has(record.memory.checkpoint))
      const pinned = whole ? await pinAllThere(options.images, record, log) : undefined
      if (pinned) {
        snapshots.#records.set(id, record)
        snapshots.#pins.set(id, pinned)
        continue
      }
      log.warn({ snapshot: id, image }, 'a snapshot has lost its image or its memory')
      await engine.kv.delete(keyOf(record))
    }
    for (const each of remnants) {
      log.warn({ snapshot: each.id }, 'a snapshot was written by another version of the daemon')
      snapshots.#remnants.set(each.id, each)
      snapshots.#pins.set(each.id, (await pinAllThere(options.images, each, log)) ?? [])
    }
    const all = [...snapshots.#records.values(), ...remnants]
    await checkpoints.removeUnknown(new Set(all.flatMap(({ memory }) => memory?.checkpoint ?? [])))
    return snapshots
  }

  /** From now on it can be started from. */
  async add(record: SnapshotRecord): Promise<SnapshotRecord> {
    const pinned = await pinAll(this.#options.images, record)
    if (!pinned) throw new SandlotError('image_unknown', `there is no image ${record.image}`)
    try {
      await this.#put(record)
    } catch (error) {
      for (const each of pinned) each[Symbol.dispose]()
      throw error
    }
    this.#pins.set(record.id, pinned)
    const { name, project } = record
    for (const { id } of name === undefined ? [] : await this.list(project, name)) {
      const other = this.#records.get(id)
      if (!other || other.id === record.id) continue
      const { name: _, ...nameless } = other
      await this.#put(nameless)
    }
    return record
  }

  find(project: string, id: string): SnapshotRecord | undefined {
    const found = this.#records.get(id)
    return found?.project === project ? found : undefined
  }

  /** Whether one of the project has the files of this image. */
  hasImage(project: string, image: string): boolean {
    return [...this.#records.values()].some(
      (each) => each.project === project && each.image === image,
    )
  }

  /** The one of a name. */
  named(project: string, name: string): SnapshotRecord | undefined {
    return [...this.#records.values()].find(
      (each) => each.project === project && each.name === name,
    )
  }

  /** By id, or else by name. Throws `snapshot_unknown`. */
  async get(project: string, idOrName: string): Promise<SnapshotRecord> {
    return this.#present(project, idOrName)
  }

  /** One that is about to be started from. Throws `snapshot_unknown`. */
  async use(project: string, idOrName: string): Promise<UsedSnapshot> {
    const record = this.#present(project, idOrName)
    const { id } = record
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1)
    this.#note(record)
    let over = false
    return {
      record,
      [Symbol.dispose]: () => {
        if (!over) this.#unuse(record)
        over = true
      },
    }
  }

  /** Oldest first. */
  async list(project: string, name?: string): Promise<readonly SnapshotRecord[]> {
    return [...this.#records.values()]
      .filter((record) => record.project === project)
      .filter((record) => name === undefined || record.name === name)
      .sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }

  /** Those whose time is over. */
  past(nowMs: number): SnapshotRecord[] {
    return [...this.#records.values()].filter(({ untilMs }) => (untilMs ?? nowMs) < nowMs)
  }

  /**
   * Forgets a snapshot and removes the image that nothing else has. Sandboxes that were started from it go on, and keep its files until
   * they end; what is about to start from it still comes up. Throws `snapshot_in_use` without `force` while something was started from it,
   * or will be.
   */
  async remove(project: string, idOrName: string, force: boolean): Promise<void> {
    const remnant = this.#remnant(project, idOrName)
    if (remnant) {
      await this.#options.engine.kv.delete(keyOf(remnant))
      this.#remnants.delete(remnant.id)
      return await this.#letGo(remnant)
    }
    const record = this.#present(project, idOrName)
    const { id } = record
    const starting = this.#uses.has(id) ? 'a sandbox that is starting' : undefined
    const user = force ? undefined : (this.#options.user(record) ?? starting)
    if (user !== undefined) {
      throw new SandlotError('snapshot_in_use', `the snapshot ${id} is in use by ${user}`)
    }
    this.#records.delete(id)
    try {
      await this.#options.engine.kv.delete(keyOf(record))
    } catch (error) {
      if (!isEngineError(error, 'disk_full') || this.#uses.has(id)) {
        this.#records.set(id, record)
        throw error
      }
      // What it kept makes the room to forget it. Found again without that, it is forgotten too.
      await this.#letGo(record)
      await this.#options.engine.kv.delete(keyOf(record))
    }
    if (!this.#uses.has(id)) await this.#letGo(record)
  }

  async view({ memory, untilMs: _, ...record }: SnapshotRecord): Promise<SnapshotView> {
    if (memory === undefined) return record
    const { runtime, cpuFeatures, resources, onRestore } = memory
    const needs = { runtime, cpuFeatures, resources }
    return { ...record, needs, ...(onRestore ? { onRestore } : {}) }
  }

  /** The snapshot that keeps an image. */
  keeperOf(image: string): SnapshotRecord | undefined {
    return [...this.#records.values()].find((record) => record.image === image)
  }

  /** While it runs, images that no record names stay. */
  async whileMaking<T>(make: () => Promise<T>): Promise<T> {
    this.#making += 1
    try {
      // What is made may be the very image that is being removed.
      await Promise.all(this.#removals)
      return await make()
    } finally {
      this.#making -= 1
      await this.reap()
    }
  }

  /** In its own time, once for all who ask meanwhile. */
  reapSoon(): void {
    this.#asked += 1
    if (this.#asked === 1) void this.#reapWhileAsked()
  }

  async #reapWhileAsked(): Promise<void> {
    for (let done = 0; done < this.#asked; ) {
      done = this.#asked
      await this.reap().catch(() => {})
    }
    this.#asked = 0
  }

  /** Removes images that came out of sandboxes and that nothing names or uses any more. */
  async reap(): Promise<void> {
    const { images } = this.#options
    for (const { id } of this.#making > 0 ? [] : await images.listExtended()) {
      if (this.#making > 0) return
      if (!this.keeperOf(id)) await this.#removeImage(id)
    }
  }

  async #removeImage(id: string): Promise<void> {
    // It is in use, or somebody else removed it: either way it is not ours to remove now.
    const removal = this.#options.images.remove(id).catch(() => {})
    this.#removals.add(removal)
    await removal
    this.#removals.delete(removal)
  }

  #present(project: string, idOrName: string): SnapshotRecord {
    const found = this.find(project, idOrName) ?? this.named(project, idOrName)
    if (found) return found
    if (this.#remnant(project, idOrName)) throw unreadable(idOrName)
    const shown = JSON.stringify(idOrName.slice(0, 64))
    throw new SandlotError('snapshot_unknown', `there is no snapshot ${shown}`)
  }

  #remnant(project: string, id: string): SnapshotRemnant | undefined {
    const found = this.#remnants.get(id)
    return found?.project === project ? found : undefined
  }

  /** When it was used last; the start doesn't wait for it, and it may be lost. */
  #note(record: SnapshotRecord): void {
    const lastUsedAtMs = this.#options.now()
    if (lastUsedAtMs - (record.lastUsedAtMs ?? 0) < SERVER_LIMITS.snapshotUseMs) return
    this.#put({ ...record, lastUsedAtMs }).catch(() => {})
  }

  #unuse(record: SnapshotRecord): void {
    const { id } = record
    const left = (this.#uses.get(id) ?? 0) - 1
    if (left > 0) return void this.#uses.set(id, left)
    this.#uses.delete(id)
    if (this.#records.has(id)) return
    this.#letGo(record).catch((error) =>
      this.#options.log.error({ err: error, snapshot: id }, 'a deleted snapshot stays on disk'),
    )
  }

  /** What it alone kept goes; what can't be removed now the next daemon removes. */
  async #letGo({ id, memory }: SnapshotRemnant): Promise<void> {
    for (const pinned of this.#pins.get(id) ?? []) pinned[Symbol.dispose]()
    this.#pins.delete(id)
    if (memory) await this.#options.checkpoints.remove(memory.checkpoint).catch(() => {})
    await this.reap()
  }

  async #put(record: SnapshotRecord): Promise<void> {
    const before = this.#records.get(record.id)
    this.#records.set(record.id, record)
    try {
      await this.#options.engine.kv.put(keyOf(record), encodeJson(record))
    } catch (error) {
      // It may have been removed meanwhile.
      const isPresent = this.#records.has(record.id)
      if (before && isPresent) this.#records.set(record.id, before)
      else this.#records.delete(record.id)
      throw error
    }
  }
}
