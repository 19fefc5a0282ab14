import { Duplex } from 'node:stream'
import { SandlotError } from '@sandlot/protocol'
import type { MuxStream } from '@sandlot/protocol/frames'
import { asSandlotError, toError } from '../connection/failure.ts'

const TO_SANDBOX = 0
const FROM_SANDBOX = 1

/**
 * A connection to a port of a sandbox, with back-pressure both ways: each direction ends by itself, as with a TCP socket. Destroyed, it is
 * reset inside. It fails with a `SandlotError`: `port_failed` when the program inside resets it, `connection_lost`, `sandbox_gone`, …
 */
export class PortConnection extends Duplex {
  readonly port: number
  readonly #stream: MuxStream
  readonly #chunks: AsyncIterator<Uint8Array>

  constructor(stream: MuxStream, port: number) {
    super({ allowHalfOpen: true })
    this.port = port
    this.#stream = stream
    this.#chunks = stream.read(FROM_SANDBOX)[Symbol.asyncIterator]()
    stream.done.catch((error) => this.#fail(error))
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => {
        this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      },
      (error) => this.#fail(error),
    )
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#stream.send(TO_SANDBOX, chunk).then(
      () => done(),
      (error) => done(this.#failed(error)),
    )
  }

  override _final(done: () => void): void {
    this.#stream.end(TO_SANDBOX)
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.readableEnded || !this.writableFinished) this.#stream.cancel()
    done(error)
  }

  #fail(error: unknown): void {
    this.destroy(this.#failed(error))
  }

  #failed(error: unknown): Error {
    const failure = asSandlotError(error)
    const isEnd = failure instanceof SandlotError && failure.code === 'cancelled'
    return isEnd ? new SandlotError('port_failed', 'the connection is over') : toError(failure)
  }
}
