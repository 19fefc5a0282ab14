import { statfsSync } from 'node:fs'
import type { Clock } from '@sandlot/engine'
import { formatSize, SandlotError } from '@sandlot/protocol'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Room } from './room.ts'

export interface DiskWatchOptions {
  /** On the file system that is watched. */
  readonly directory: string
  /** Below so much free space nothing new is admitted; 0: a share of the file system. */
  readonly freeBytesMin: number
  readonly clock: Clock
  readonly log: Logger
  /** For tests: what is free, and what there is in all. */
  readonly look?: () => DiskFound
}

export interface DiskFound {
  readonly freeBytes: number
  readonly totalBytes: number
}

/**
 * Watches the disk of the data directory. Where it is nearly full nothing is begun that needs more of it, so that what goes on can still be
 * written: results, deletions, what is being torn down. It opens again by itself once there is a quarter more than the least.
 */
export class DiskWatch implements Disposable {
  readonly #options: DiskWatchOptions
  #found: DiskFound = { freeBytes: Number.POSITIVE_INFINITY, totalBytes: Number.POSITIVE_INFINITY }
  #low = false
  #room: Pick<Room, 'close' | 'open'> | undefined
  #cancel: () => void = () => {}

  private constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  static open(options: DiskWatchOptions): DiskWatch {
    const watch = new DiskWatch(options)
    watch.#lookOn()
    return watch
  }

  get isLow(): boolean {
    return this.#low
  }

  get freeBytes(): number {
    return this.#found.freeBytes
  }

  /** From there on nothing new is admitted. */
  get leastBytes(): number {
    const { freeBytesMin } = this.#options
    const { diskFreeBytes, diskFreeShare } = SERVER_LIMITS
    return freeBytesMin || Math.min(diskFreeBytes, this.#found.totalBytes * diskFreeShare)
  }

  /** One line for a person; undefined where there is room. */
  get why(): string | undefined {
    if (!this.#low) return undefined
    const { directory } = this.#options
    return `the disk of ${directory} has ${formatSize(this.freeBytes)} free space left, and nothing is begun below ${formatSize(this.leastBytes)}`
  }

  /** From now on sandboxes are let into this room only while there is space. */
  govern(room: Pick<Room, 'close' | 'open'>): void {
    this.#room = room
    this.#tell()
  }

  /** @throws SandlotError `disk_full` where nothing new is admitted */
  check(): void {
    // Room may have been made since.
    if (this.#low) this.#look()
    const { why } = this
    if (why !== undefined) throw new SandlotError('disk_full', why, { hint: HINT })
  }

  /** What is sent, until there is no room for it: a large body would fill the disk between two looks. */
  async *bound(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let unseenBytes = 0
    for await (const chunk of body) {
      unseenBytes += chunk.byteLength
      if (unseenBytes >= SERVER_LIMITS.diskEveryBytes) {
        unseenBytes = 0
        this.#look()
      }
      this.check()
      yield chunk
    }
  }

  [Symbol.dispose](): void {
    this.#cancel()
  }

  #lookOn(): void {
    this.#look()
    this.#cancel = this.#options.clock.after(SERVER_LIMITS.diskEveryMs, () => this.#lookOn())
  }

  #look(): void {
    const { directory, look = () => lookAt(directory), log } = this.#options
    try {
      this.#judge(look())
    } catch (err) {
      log.warn({ err }, 'the disk of the data directory could not be looked at')
    }
  }

  #judge(found: DiskFound): void {
    this.#found = found
    const least = this.leastBytes
    const low = found.freeBytes < (this.#low ? least * REOPENS_AT : least)
    if (low === this.#low) return
    this.#low = low
    if (low) this.#options.log.error({ ...found, least }, `${this.why}: ${HINT}`)
    else this.#options.log.info({ ...found }, 'there is room on the disk again')
    this.#tell()
  }

  #tell(): void {
    const { why } = this
    if (why === undefined) this.#room?.open()
    else this.#room?.close(why)
  }
}

/** Not at the very least: otherwise it would open and close with every file. */
const REOPENS_AT = 1.25

const HINT =
  'Delete runs, snapshots or images that nobody needs, or free space on that disk; it goes on by itself.'

function lookAt(directory: string): DiskFound {
  const { bavail, blocks, bsize } = statfsSync(directory)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}
