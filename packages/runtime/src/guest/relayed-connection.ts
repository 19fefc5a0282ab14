import { Duplex } from 'node:stream'
import type { MuxStream } from '@sandlot/protocol/frames'

const TO_INSIDE = 0
const FROM_INSIDE = 1

/**
 * A connection that a process inside has made to the relay, with credit both ways. Ended in both directions it is over; destroyed
 * before, it is reset inside. It is destroyed when the process resets it or the guest is lost.
 */
export class RelayedConnection extends Duplex {
  readonly #stream: MuxStream
  readonly #chunks: AsyncIterator<Uint8Array>

  constructor(stream: MuxStream) {
    super({ allowHalfOpen: true })
    this.#stream = stream
    this.#chunks = stream.read(FROM_INSIDE)[Symbol.asyncIterator]()
    const lost = () => this.destroy()
    if (stream.signal.aborted) lost()
    else stream.signal.addEventListener('abort', lost, { once: true })
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => {
        this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      },
      () => this.destroy(),
    )
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.#stream.send(TO_INSIDE, chunk).then(() => done(), done)
  }

  override _final(done: () => void): void {
    this.#stream.end(TO_INSIDE)
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.readableEnded && this.writableFinished) this.#stream.result({})
    else this.#stream.fail({ code: 'cancelled', message: 'the connection was closed' })
    done(error)
  }
}
