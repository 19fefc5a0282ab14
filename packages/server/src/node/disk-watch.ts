import { statfs } from 'node:fs/promises'
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
  readonly look?: () => Promise<DiskFound>
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
  #over = false
  #cancel: () => void = () => {}

  private constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  static async open(options: DiskWatchOptions): Promise<DiskWatch> {
    const watch = new DiskWatch(options)
    await watch.#look()
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
    const { why } = this
    if (why !== undefined) throw new SandlotError('disk_full', why, { hint: HINT })
  }

  [Symbol.dispose](): void {
    this.#over = true
    this.#cancel()
  }

  async #look(): Promise<void> {
    const { directory, look = () => lookAt(directory), clock, log } = this.#options
    try {
      this.#judge(await look())
    } catch (err) {
      log.warn({ err }, 'the disk of the data directory could not be looked at')
    }
    if (!this.#over) this.#cancel = clock.after(SERVER_LIMITS.diskEveryMs, () => void this.#look())
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

async function lookAt(directory: string): Promise<DiskFound> {
  const { bavail, blocks, bsize } = await statfs(directory)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}
