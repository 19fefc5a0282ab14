/** Reads a stream of chunks by exact counts. */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()
  #ended = false

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Exactly `count` bytes, or fewer at the end of the stream. */
  async read(count: number): Promise<Buffer> {
    const pieces: Uint8Array[] = []
    for await (const piece of this.pieces(count)) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  /** The next `count` bytes in pieces as they come, fewer at the end of the stream. */
  async *pieces(count: number): AsyncGenerator<Uint8Array> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#fill())) return
      const piece = this.#rest.subarray(0, left)
      this.#rest = this.#rest.subarray(piece.length)
      left -= piece.length
      yield piece
    }
  }

  /** Reads to the end and throws the rest away. */
  async drain(): Promise<void> {
    while (await this.#fill()) {}
    this.#rest = new Uint8Array()
  }

  /** Ends the stream; its producer is told where it was early. */
  async close(): Promise<void> {
    if (!this.#ended) await this.#chunks.return?.()
  }

  async #fill(): Promise<boolean> {
    const next = await this.#chunks.next()
    if (next.done) {
      this.#ended = true
      return false
    }
    this.#rest = next.value
    return true
  }
}
