import { formatSize } from '@sandlot/protocol'
import type { MemorySpace, RuntimeDriver, Sandbox } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'

/** A sandbox that has room, and what it was promised. */
export interface Promised {
  readonly requestBytes: number
  /** Absent while it is being started. */
  readonly sandbox?: Pick<Sandbox, 'memoryBytes'> | undefined
}

/**
 * What the machine's memory still gives to new sandboxes. It is looked at, because sandboxes may take more than was promised to them, and
 * because other programs take of it too.
 *
 * ```
 * left = what is available − what was promised and is not used yet − the least that is kept free
 * ```
 * Once nothing is left, nobody is let in until a quarter more than the least is there again.
 */
export class MemoryRoom {
  readonly #driver: Pick<RuntimeDriver, 'memorySpace'>
  readonly #freeBytesMin: number
  #space: MemorySpace = { totalBytes: Infinity, availableBytes: Infinity }
  #unusedBytes = 0
  /** Promised since the last look began. */
  #sinceBytes = 0
  #low = false
  #looking: Promise<void> | undefined
  /** Sandboxes that have room. */
  promised: () => Iterable<Promised> = () => []
  /** Told after each look. */
  onLook: (() => void) | undefined

  /** `freeBytesMin`: what is kept free; 0: a share of the memory. */
  constructor(driver: Pick<RuntimeDriver, 'memorySpace'>, freeBytesMin: number) {
    this.#driver = driver
    this.#freeBytesMin = freeBytesMin
  }

  get totalBytes(): number {
    return this.#space.totalBytes
  }

  get availableBytes(): number {
    return this.#space.availableBytes
  }

  /** Promised to sandboxes that don't use it yet. */
  get unusedBytes(): number {
    return this.#unusedBytes + this.#sinceBytes
  }

  /** So much is kept free. */
  get leastBytes(): number {
    const { memoryFreeBytes, memoryFreeShare } = SERVER_LIMITS
    return this.#freeBytesMin || Math.min(memoryFreeBytes, this.totalBytes * memoryFreeShare)
  }

  /** What may still be promised; below 0 where more is taken than should be. */
  get leftBytes(): number {
    return this.availableBytes - this.unusedBytes - this.leastBytes
  }

  get isLow(): boolean {
    return this.#low
  }

  /** One line for a person; undefined where there is room. */
  get why(): string | undefined {
    return this.#low ? this.describe() : undefined
  }

  /** How it stands, for a person. */
  describe(): string {
    const { availableBytes, unusedBytes, leastBytes } = this
    return `the machine has ${formatSize(availableBytes)} of memory left, ${formatSize(unusedBytes)} of it promised to sandboxes that don't use it yet, and ${formatSize(leastBytes)} are kept free`
  }

  admits(bytes: number): boolean {
    return !this.#low && bytes <= this.leftBytes
  }

  promise(bytes: number): void {
    this.#sinceBytes += bytes
  }

  /** Looks at the machine and at all sandboxes. Who asks meanwhile gets the same look. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    const before = this.#sinceBytes
    let unusedBytes = 0
    let count = 0
    for (const { requestBytes, sandbox } of [...this.promised()]) {
      const usedBytes = (await sandbox?.memoryBytes().catch(() => requestBytes)) ?? 0
      unusedBytes += Math.max(0, requestBytes - usedBytes)
      if (++count % LOOKED_AT_ONCE === 0) await new Promise(setImmediate)
    }
    this.#space = await this.#driver.memorySpace()
    this.#unusedBytes = unusedBytes
    this.#sinceBytes -= before
    const freeBytes = this.availableBytes - this.unusedBytes
    this.#low = freeBytes < this.leastBytes * (this.#low ? REOPENS_AT : 1)
    this.onLook?.()
  }
}

/** Sandboxes between two turns of everything else. */
const LOOKED_AT_ONCE = 64

/** Not at the very least: otherwise it would open and close with every sandbox. */
const REOPENS_AT = 1.25
