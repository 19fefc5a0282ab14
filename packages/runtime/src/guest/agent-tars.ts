import type { PayloadMap } from '@sandlot/protocol/frames'
import type {
  ContentStream,
  DifferenceOptions,
  GuestBytes,
  GuestTars,
  GuestText,
  GuestWait,
} from './guest.ts'
import { toPath } from './guest-text.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { download, failedDownload, upload } from './transfer.ts'

const TRANSFER = { timeoutMs: GUEST_LIMITS.transferMs }

/** Tars into and out of a sandbox, by requests to its agent. */
export class AgentTars implements GuestTars {
  readonly #link: GuestLink

  constructor(link: GuestLink) {
    this.#link = link
  }

  async in(
    world: string,
    path: GuestText,
    tar: GuestBytes,
    options: { readonly uid?: number; readonly gid?: number } = {},
    wait: GuestWait = {},
  ): Promise<{ entries: number }> {
    const args = { world, path: toPath(path), uid: options.uid, gid: options.gid }
    const stream = this.#link.open('tar.in', args, { ...TRANSFER, ...wait })
    void upload(stream, tar)
    return await this.#link.answer('tar.in', stream, messages.tarEntries)
  }

  out(world: string, path: GuestText, wait: GuestWait = {}): ContentStream<{ entries: number }> {
    return this.#download('tar.out', () => ({ world, path: toPath(path) }), wait)
  }

  difference(
    world: string,
    { exclude = [] }: DifferenceOptions = {},
    wait: GuestWait = {},
  ): ContentStream<{ entries: number }> {
    return this.#download('tar.difference', () => ({ world, exclude: exclude.map(toPath) }), wait)
  }

  #download(
    op: string,
    args: () => PayloadMap,
    wait: GuestWait,
  ): ContentStream<{ entries: number }> {
    try {
      const stream = this.#link.open(op, args(), { ...TRANSFER, ...wait })
      return download(this.#link, op, stream, messages.tarEntries)
    } catch (error) {
      return failedDownload(error)
    }
  }
}
