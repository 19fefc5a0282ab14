import { createHash } from 'node:crypto'

/** Blobs by digest, in memory, that count how often each was opened. */
export class MemoryBlobs {
  readonly #contents = new Map<string, Uint8Array>()
  opened = 0

  /** The digest. */
  put(content: Uint8Array): string {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
    this.#contents.set(digest, content)
    return digest
  }

  /** Other bytes than the digest says. */
  forge(digest: string, content: Uint8Array): void {
    this.#contents.set(digest, content)
  }

  readonly has = async (digest: string): Promise<boolean> => this.#contents.has(digest)

  readonly open = async (digest: string): Promise<AsyncIterable<Uint8Array>> => {
    this.opened += 1
    const content = this.#contents.get(digest)
    if (!content) throw new Error(`no blob ${digest}`)
    return pieces(content)
  }
}

/** In pieces whose size fits nothing, so that whoever assumes boundaries is found. */
async function* pieces(content: Uint8Array): AsyncGenerator<Uint8Array> {
  const length = 10_007
  for (let at = 0; at < content.length; at += length) yield content.subarray(at, at + length)
}
