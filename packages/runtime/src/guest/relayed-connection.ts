import { Duplex } from 'node:stream'
import type { MuxStream } from '@sandlot/protocol/frames'
import { GuestLost } from './guest-error.ts'
import { GUEST_LIMITS } from './limits.ts'

const TO_INSIDE = 0
const FROM_INSIDE = 1

/**
 * A connection of a process inside, with credit both ways. Ended in both directions it is over; destroyed before, it is reset inside. One
 * that this side has ended is no different from a socket that is closed: the process still gets all that was written. It is destroyed
 * when the process resets it or the guest is lost.
 *
 * `acceptor`: the process has connected to the relay, and this side answers its stream. `opener`: it listens and was connected to, and
 * the agent answers. Only then a destruction has an error: nobody asked for the other kind.
 */
export class RelayedConnection extends Duplex {
  readonly #stream: MuxStream
  readonly #role: 'acceptor' | 'opener'
  readonly #failure: (error: unknown) => unknown
  readonly #chunks: AsyncIterator<Uint8Array>

  /** `failure`: what the end of its stream means; a guest that is lost is what destroys it. */
  constructor(
    stream: MuxStream,
    role: 'acceptor' | 'opener',
    failure: (error: unknown) => unknown = wasReset,
  ) {
    super({ allowHalfOpen: true })
    this.#stream = stream
    this.#role = role
    this.#failure = failure
    const window = role === 'opener' ? { window: GUEST_LIMITS.portWindowBytes } : {}
    this.#chunks = stream.read(FROM_INSIDE, window)[Symbol.asyncIterator]()
    // Who doesn't listen for its failure learns of its end.
    this.on('error', () => {})
    if (role === 'opener') {
      stream.done.catch((error) => this.#reset(error))
      return
    }
    const lost = () => this.destroy()
    if (stream.signal.aborted) lost()
    else stream.signal.addEventListener('abort', lost, { once: true })
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => {
        this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      },
      (error) => this.#reset(error),
    )
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.#stream.send(TO_INSIDE, chunk).then(
      () => done(),
      (error) => done(this.#failed(error)),
    )
  }

  override _final(done: () => void): void {
    this.#stream.end(TO_INSIDE)
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#role === 'opener') {
      if (!this.readableEnded || !this.writableFinished) this.#stream.cancel()
    } else if (this.writableFinished && !error) this.#stream.result({})
    else this.#stream.fail({ code: 'cancelled', message: 'the connection was closed' })
    done(error)
  }

  #reset(cause: unknown): void {
    this.destroy(this.#role === 'opener' ? this.#failed(cause) : undefined)
  }

  #failed(cause: unknown): Error {
    const failure = this.#failure(cause)
    return failure instanceof GuestLost ? failure : wasReset(cause)
  }
}

/** As the system says it of a socket: whoever works with sockets knows what it means. */
function wasReset(cause: unknown): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error('the connection was reset', { cause })
  error.code = 'ECONNRESET'
  return error
}
