import type { RelayNews, RuntimeDriver } from '@sandlot/runtime'
import type { Entry } from './entry.ts'
import { listener, type NetworkParts } from './networks.ts'

export interface RefusedPacketsParts
  extends Pick<NetworkParts, 'clock' | 'log' | 'numbers' | 'journals'> {
  readonly driver: Pick<RuntimeDriver, 'refusedPackets'>
}

const DETAIL =
  'packets to it are dropped: an open network reaches public addresses, and none of the machine'

/** Puts what the machine dropped of open networks into the logs of their sandboxes, whenever it is called. */
export class RefusedPacketsNews {
  readonly #parts: RefusedPacketsParts
  readonly #listeners = new WeakMap<Entry, (news: RelayNews) => void>()

  constructor(parts: RefusedPacketsParts) {
    this.#parts = parts
  }

  async tell(entries: ReadonlyMap<string, Entry>): Promise<void> {
    const refused = await this.#parts.driver.refusedPackets()
    if (refused.length === 0) return
    const owners = new Map([...entries.values()].map((entry) => [entry.sandbox?.hostId, entry]))
    for (const { hostId, target, protocol } of refused) {
      const entry = owners.get(hostId)
      if (!entry) continue
      const listen = this.#listeners.get(entry) ?? (await listener(this.#parts, entry))
      this.#listeners.set(entry, listen)
      listen({ target, protocol, outcome: 'private_address', detail: DETAIL })
    }
  }
}
