import type { PayloadMap } from './payload.ts'

/** The peer answered a request with `error`. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
  readonly code: string
  readonly errno?: number
  readonly hint?: string
  readonly details?: PayloadMap

  constructor({ code, message, errno, hint, details }: StreamFailure) {
    super(message)
    this.code = code
    if (errno !== undefined) this.errno = errno
    if (hint !== undefined) this.hint = hint
    if (details !== undefined) this.details = details
  }
}

/** What an `error` frame says. */
export interface StreamFailure {
  readonly code: string
  readonly message: string
  readonly errno?: number
  /** What to do next, for a person. */
  readonly hint?: string
  /** More for a program, as far as it fits a frame. */
  readonly details?: PayloadMap
}

/** The connection ended before the request did; whether the request was done is unknown. `cause` says why. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'

  constructor(detail: string, options: { cause?: unknown } = {}) {
    super(`the connection is lost: ${detail}`, options)
  }
}

/** The opener of a stream asked to stop. */
export class StreamCancelled extends Error {
  override readonly name = 'StreamCancelled'

  constructor() {
    super('the request was cancelled')
  }
}

/** Bytes for a stream that is over: its answer was given, or its channel ended. */
export class StreamOver extends Error {
  override readonly name = 'StreamOver'

  constructor() {
    super('the stream takes no more data')
  }
}

/** Too many streams are under way on this connection. */
export class MuxBusy extends Error {
  override readonly name = 'MuxBusy'

  constructor(streams: number) {
    super(`${streams} streams are under way on this connection, as many as it takes`)
  }
}
