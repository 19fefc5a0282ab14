import type { MuxStream } from '@sandlot/protocol/frames'
import type {
  FileContent,
  GuestBytes,
  GuestFileEntry,
  GuestFileStat,
  GuestFiles,
  GuestText,
  GuestWait,
  ReadRange,
  WriteOptions,
} from './guest.ts'
import { GuestError } from './guest-error.ts'
import { toPath } from './guest-text.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import { ListingReader } from './listing.ts'
import * as messages from './messages.ts'
import { DOWNLOAD, download, translated, upload } from './transfer.ts'

const TRANSFER = { timeoutMs: GUEST_LIMITS.transferMs }

/** Files of a sandbox, by requests to its agent. */
export class AgentFiles implements GuestFiles {
  readonly #link: GuestLink

  constructor(link: GuestLink) {
    this.#link = link
  }

  async read(
    world: string,
    path: GuestText,
    range: ReadRange = {},
    wait: GuestWait = {},
  ): Promise<FileContent> {
    const args = { world, path: toPath(path), ...range }
    const stream = this.#link.open('file.read', args, { ...TRANSFER, ...wait })
    const stat = this.#statEvent(stream)
    const content = download(this.#link, 'file.read', stream, messages.fileSize)
    return { stat: await stat, content }
  }

  async write(
    world: string,
    path: GuestText,
    content: GuestBytes,
    options: WriteOptions = {},
    wait: GuestWait = {},
  ): Promise<{ sizeBytes: number }> {
    const { parents = false, append = false, exclusive = false, mode, uid, gid } = options
    const args = { world, path: toPath(path), parents, append, exclusive, mode, uid, gid }
    const stream = this.#link.open('file.write', args, { ...TRANSFER, ...wait })
    void upload(stream, content)
    return await this.#link.answer('file.write', stream, messages.fileSize)
  }

  async stat(
    world: string,
    path: GuestText,
    options: { readonly follow?: boolean } = {},
    wait: GuestWait = {},
  ): Promise<GuestFileStat> {
    const args = { world, path: toPath(path), follow: options.follow ?? true }
    return await this.#link.request('file.stat', args, messages.fileStat, wait)
  }

  async *list(
    world: string,
    path: GuestText,
    wait: GuestWait = {},
  ): AsyncGenerator<GuestFileEntry, void, undefined> {
    const args = { world, path: toPath(path) }
    const stream = this.#link.open('file.list', args, { ...TRANSFER, ...wait })
    try {
      const reader = new ListingReader(this.#link)
      const chunks = stream.read(DOWNLOAD)[Symbol.asyncIterator]()
      for (;;) {
        const chunk = await translated(this.#link, chunks.next())
        if (chunk.done) break
        yield* reader.push(chunk.value)
      }
      await this.#link.answer('file.list', stream, messages.fileCount)
      reader.end()
    } finally {
      stream.abort(new GuestError('cancelled', 'the listing was left'))
    }
  }

  async makeDirectory(
    world: string,
    path: GuestText,
    options: { readonly parents?: boolean; readonly mode?: number } = {},
    wait: GuestWait = {},
  ): Promise<void> {
    const { parents = false, mode } = options
    const args = { world, path: toPath(path), parents, mode }
    await this.#link.request('file.makeDirectory', args, messages.nothing, wait)
  }

  async remove(
    world: string,
    path: GuestText,
    options: { readonly recursive?: boolean; readonly force?: boolean } = {},
    wait: GuestWait = {},
  ): Promise<void> {
    const { recursive = false, force = false } = options
    const args = { world, path: toPath(path), recursive, force }
    await this.#link.request('file.remove', args, messages.nothing, { ...TRANSFER, ...wait })
  }

  async rename(world: string, from: GuestText, to: GuestText, wait: GuestWait = {}): Promise<void> {
    const args = { world, from: toPath(from), to: toPath(to) }
    await this.#link.request('file.rename', args, messages.nothing, wait)
  }

  async chmod(world: string, path: GuestText, mode: number, wait: GuestWait = {}): Promise<void> {
    const args = { world, path: toPath(path), mode }
    await this.#link.request('file.chmod', args, messages.nothing, wait)
  }

  /** The stat that comes ahead of a file's content, or why there is none. */
  #statEvent(stream: MuxStream): Promise<GuestFileStat> {
    return new Promise((resolve, reject) => {
      let seen = false
      stream.onEvent = (event) => {
        seen = true
        resolve(this.#link.parse('the stat of a file', event, messages.readStat))
      }
      stream.done.then(
        () => seen || reject(this.#link.breach('a file without its stat')),
        (error) => reject(this.#link.failure(error)),
      )
    })
  }
}
