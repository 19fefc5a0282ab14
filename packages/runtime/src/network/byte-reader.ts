import type { Readable } from 'node:stream'

/** Takes a stream's bytes in portions of known size, until `release` leaves the rest to somebody else. */
export class ByteReader {
  readonly #stream: Readable
  readonly #onData = (chunk: Buffer) => this.#came(chunk)
  readonly #onOver = () => this.#over()
  #bytes: Buffer = Buffer.alloc(0)
  #wanted: { count: number; resolve(bytes: Buffer): void; reject(error: Error): void } | undefined
  #ended = false

  constructor(stream: Readable) {
    this.#stream = stream
    stream.on('data', this.#onData).on('end', this.#onOver).on('close', this.#onOver)
    stream.resume()
  }

  /** The next `count` bytes, one call after the other. Rejects where the stream ends before. */
  take(count: number): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    this.#wanted = { count, resolve, reject }
    this.#serve()
    return promise
  }

  /** What came and was not taken goes back; the stream is left paused. */
  release(): void {
    const stream = this.#stream
    stream.off('data', this.#onData).off('end', this.#onOver).off('close', this.#onOver)
    stream.pause()
    if (this.#bytes.length > 0) stream.unshift(this.#bytes)
  }

  #came(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    // Nothing is read ahead of what is wanted.
    this.#stream.pause()
    this.#serve()
  }

  #over(): void {
    this.#ended = true
    this.#serve()
  }

  #serve(): void {
    const wanted = this.#wanted
    if (!wanted) return
    if (this.#bytes.length >= wanted.count) {
      this.#wanted = undefined
      const taken = this.#bytes.subarray(0, wanted.count)
      this.#bytes = this.#bytes.subarray(wanted.count)
      wanted.resolve(taken)
    } else if (this.#ended || this.#stream.destroyed) {
      this.#wanted = undefined
      wanted.reject(new Error('the connection ended early'))
    } else this.#stream.resume()
  }
}
