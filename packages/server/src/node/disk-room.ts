import type { DiskSpace, RuntimeDriver } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'

/** What the machine's disk gives to sandboxes. It is measured, because images, snapshots and others write to it too. */
export class DiskRoom {
  readonly #driver: Pick<RuntimeDriver, 'diskSpace'>
  #bytes = 0

  constructor(driver: Pick<RuntimeDriver, 'diskSpace'>) {
    this.#driver = driver
  }

  /** In all, as last measured: what is free, what sandboxes have taken of it, less a reserve that nobody is promised. */
  get bytes(): number {
    return this.#bytes
  }

  /** @throws DriverError `unsupported` where the machine has no disk for sandboxes */
  async measure(): Promise<void> {
    try {
      this.#bytes = roomOf(await this.#driver.diskSpace())
    } catch (error) {
      this.#bytes = 0
      throw error
    }
  }
}

function roomOf({ totalBytes, freeBytes, heldBytes }: DiskSpace): number {
  const { diskReserveBytes, diskReserveShare } = SERVER_LIMITS
  const reserveBytes = Math.max(diskReserveBytes, totalBytes * diskReserveShare)
  return Math.max(0, Math.floor(freeBytes + heldBytes - reserveBytes))
}
