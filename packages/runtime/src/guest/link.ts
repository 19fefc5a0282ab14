import {
  ConnectionLost,
  FRAME,
  FrameDecoder,
  MalformedFrame,
  Mux,
  MuxBusy,
  type MuxStream,
  type PayloadMap,
  PayloadTooLarge,
  RemoteError,
  StreamCancelled,
  StreamOver,
} from '@sandlot/protocol/frames'
import type { z } from 'zod'
import type { GuestWait } from './guest.ts'
import type { GuestErrorCode, GuestLostCause } from './guest-error.ts'
import { GUEST_ERROR_CODES, GuestError, GuestLost, GuestTimeout } from './guest-error.ts'
import { Heartbeat, type HeartbeatTimes } from './heartbeat.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { Pipes } from './pipes.ts'
import { GUEST_REVISION } from './revision.ts'

/**
 * The connection to one agent: frames over its pipes, and the one place where it is lost.
 *
 * ```
 * handshake ─▶ up ─▶ lost        every way out is `lose`; the first cause stays
 *     └────────────────▶┘
 * ```
 */
export class GuestLink {
  readonly lost: Promise<GuestLost>
  readonly #pipes: Pipes
  readonly #mux: Mux
  readonly #heartbeat: Heartbeat
  #lostBy: GuestLost | undefined
  #resolveLost!: (lost: GuestLost) => void
  #onHello: ((hello: PayloadMap) => void) | undefined
  /** Known from the hello on. */
  agentRevision = GUEST_REVISION
  /** A process inside has connected to the relay. */
  onRelayed: ((stream: MuxStream) => void) | undefined

  /** `nonce`: nothing from the guest is believed before its acknowledgement of this sync. */
  constructor(pipes: Pipes, nonce: Uint8Array, times: HeartbeatTimes) {
    this.#pipes = pipes
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve
    })
    this.#mux = new Mux({
      side: 'dialler',
      transport: {
        write: (bytes, done) => pipes.input.write(bytes, done),
        onDrain: (resume) => pipes.input.on('drain', resume),
      },
      limits: { streams: GUEST_LIMITS.streams, controlBytes: GUEST_LIMITS.controlBytes },
      onHello: (hello) => this.#greeted(hello),
      onOpen: (stream, { op }) => this.#asked(stream, op),
      onClose: (error) => this.#muxClosed(error),
    })
    this.#heartbeat = new Heartbeat(times, {
      ping: () => void this.#mux.ping().catch(ignore),
      silent: (forMs) => this.lose('unresponsive', `nothing came for ${forMs} ms`),
    })
    this.#listen(nonce)
  }

  /** Writes the sync, behind zeros that end what a predecessor left half written, and waits for the hello. */
  greet(bytes: readonly Uint8Array[]): Promise<PayloadMap> {
    return new Promise((resolve, reject) => {
      this.#onHello = resolve
      void this.lost.then(reject)
      for (const part of bytes) this.#pipes.input.write(part)
      this.#pipes.output.resume()
    })
  }

  /** From now on silence is noticed. */
  watchSilence(): void {
    if (!this.#lostBy) this.#heartbeat.start()
  }

  /** It stands still and says nothing; until `watchSilence` that is no sign of anything. */
  expectSilence(): void {
    this.#heartbeat.stop()
  }

  /** A request without content: its answer, in its shape. */
  async request<T>(
    op: string,
    args: PayloadMap,
    shape: z.ZodType<T>,
    wait: GuestWait = {},
  ): Promise<T> {
    const stream = this.open(op, args, { timeoutMs: GUEST_LIMITS.requestMs, ...wait })
    return await this.answer(op, stream, shape)
  }

  /**
   * Starts a request with content. `timeoutMs` bounds the whole of it, undefined: nothing does. Throws what `failure` gives.
   */
  open(op: string, args: PayloadMap, wait: GuestWait): MuxStream {
    if (this.#lostBy) throw this.#lostBy
    const { signal, timeoutMs } = wait
    let stream: MuxStream
    try {
      stream = this.#mux.open({ op, ...args }, signal ? { signal } : {})
    } catch (error) {
      throw this.failure(error)
    }
    if (timeoutMs !== undefined) {
      const timer = setTimeout(() => stream.abort(new GuestTimeout(op, timeoutMs)), timeoutMs)
      const clear = () => clearTimeout(timer)
      stream.done.then(clear, clear)
    }
    return stream
  }

  /** The answer to a request, in its shape; an answer of another shape loses the guest. */
  async answer<T>(op: string, stream: MuxStream, shape: z.ZodType<T>): Promise<T> {
    let answer: PayloadMap
    try {
      answer = await stream.done
    } catch (error) {
      throw this.failure(error)
    }
    return this.parse(`the result of ${op}`, answer, shape)
  }

  /** What the guest said, in its shape; another shape loses the guest. */
  parse<T>(what: string, said: unknown, shape: z.ZodType<T>): T {
    const parsed = shape.safeParse(said)
    if (parsed.success) return parsed.data
    const issue = parsed.error.issues[0]
    throw this.breach(`${what}: ${issue?.path.join('.')} ${issue?.message}`)
  }

  /** The guest broke a rule: it is lost. Gives the error to throw. */
  breach(detail: string, reason?: unknown): GuestLost {
    return this.lose('protocol', detail, reason)
  }

  /** What a failure of the connection or of a stream is to the caller of a guest. */
  failure(error: unknown): unknown {
    if (error instanceof RemoteError) {
      const code = GUEST_ERROR_CODES.find((known) => known === error.code) ?? 'io'
      const options = error.errno === undefined ? {} : { errno: error.errno }
      return new GuestError(code, error.message + this.#whyUnsupported(code), options)
    }
    if (error instanceof MuxBusy) return new GuestError('limit', error.message)
    if (error instanceof PayloadTooLarge) return new GuestError('too_large', error.message)
    if (error instanceof StreamCancelled || error instanceof StreamOver) {
      return new GuestError('cancelled', error.message)
    }
    // Without a loss of this connection it is another one's, with which the caller gave up or which was to bring the content.
    if (error instanceof ConnectionLost) return this.#lostBy ?? error
    return error
  }

  /** The first cause stays. Gives the one that holds. */
  lose(cause: GuestLostCause, detail: string, reason?: unknown): GuestLost {
    if (this.#lostBy) return this.#lostBy
    const lost = new GuestLost(cause, detail, reason)
    this.#lostBy = lost
    this.#heartbeat.stop()
    this.#mux.close(new ConnectionLost(lost.message, { cause: lost }))
    void this.#pipes.close()
    this.#resolveLost(lost)
    return lost
  }

  async close(): Promise<void> {
    this.lose('detached', 'this daemon let go of it')
    await this.#pipes.close()
  }

  #listen(nonce: Uint8Array): void {
    const { input, output } = this.#pipes
    let acknowledged = false
    const decoder = new FrameDecoder(
      (type, channel, stream, payload) => {
        if (acknowledged) this.#mux.deliver(type, channel, stream, payload)
        else acknowledged = type === FRAME.syncAck
      },
      { hunt: { type: 'syncAck', nonce } },
    )
    this.#pipes.onBytes = (bytes) => {
      if (this.#lostBy) return
      this.#heartbeat.heard()
      try {
        decoder.pushLent(bytes)
      } catch (error) {
        this.breach((error as Error).message, error)
      }
    }
    output.on('end', () => this.lose('exited', 'end of file on its output'))
    for (const pipe of [input, output]) {
      pipe.on('error', (error) => this.lose('io', error.message, error))
    }
  }

  /** @throws GuestError `unsupported` where the agent is from before `revision` */
  requireRevision(revision: number, what: string): void {
    if (this.agentRevision >= revision) return
    throw new GuestError('unsupported', what + this.#whyUnsupported('unsupported'))
  }

  /** A sandbox that an earlier daemon started lives on with the agent that it has. */
  #whyUnsupported(code: GuestErrorCode): string {
    if (code !== 'unsupported' || this.agentRevision >= GUEST_REVISION) return ''
    return `: its agent is of an older version (revision ${this.agentRevision}, not ${GUEST_REVISION}), so start the sandbox anew`
  }

  #greeted(hello: PayloadMap): void {
    const greet = this.#onHello
    this.#onHello = undefined
    if (!greet) throw new MalformedFrame('stream', 'a second hello')
    greet(hello)
  }

  /** The one thing that an agent asks of its daemon. */
  #asked(stream: MuxStream, op: unknown): void {
    if (op === 'relay.connect' && this.onRelayed) this.onRelayed(stream)
    else stream.fail({ code: 'unsupported', message: 'no such request' })
  }

  #muxClosed(error: Error): void {
    if (error instanceof MalformedFrame) this.breach(error.message, error)
    else this.lose('unresponsive', error.message, error)
  }
}

function ignore(): void {}
