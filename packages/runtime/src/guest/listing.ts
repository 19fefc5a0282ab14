import { decodePayload, measureValue } from '@sandlot/protocol/frames'
import type { GuestFileEntry } from './guest.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'

/** Cuts the stream of a directory listing into entries. */
export class ListingReader {
  readonly #link: GuestLink
  #rest = new Uint8Array(0)

  constructor(link: GuestLink) {
    this.#link = link
  }

  /** The entries that are whole with this chunk. Throws when the guest breaks a rule. */
  push(chunk: Uint8Array): GuestFileEntry[] {
    const bytes = new Uint8Array(this.#rest.length + chunk.length)
    bytes.set(this.#rest)
    bytes.set(chunk, this.#rest.length)
    const entries: GuestFileEntry[] = []
    let at = 0
    try {
      for (let end = measureValue(bytes, at); end !== undefined; end = measureValue(bytes, at)) {
        const said = decodePayload(bytes.subarray(at, end))
        entries.push(this.#link.parse('an entry of a directory', said, messages.fileEntry))
        at = end
      }
    } catch (error) {
      throw this.#link.breach('an entry of a directory that is no map', error)
    }
    this.#rest = bytes.slice(at)
    if (this.#rest.length > GUEST_LIMITS.entryBytes) {
      throw this.#link.breach('an entry of a directory is too long')
    }
    return entries
  }

  /** Throws when the listing ended inside an entry. */
  end(): void {
    if (this.#rest.length > 0) throw this.#link.breach('a listing that ends inside an entry')
  }
}
