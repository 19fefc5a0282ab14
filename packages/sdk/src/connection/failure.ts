/** From what a connection failed with to the error that a caller meets. */
import { ERROR_CATALOGUE, type ErrorCode, SandlotError } from '@sandlot/protocol'
import {
  ConnectionLost,
  MuxBusy,
  PayloadRefused,
  PayloadTooLarge,
  RemoteError,
  StreamCancelled,
  StreamOver,
} from '@sandlot/protocol/frames'

/** What a stream rejected with, in the catalogue's words. Errors of the caller's own pass through. */
export function asSandlotError(thrown: unknown): unknown {
  if (thrown instanceof RemoteError) {
    const { hint, details } = thrown
    const more = { ...(hint ? { hint } : {}), ...(details ? { details } : {}) }
    return new SandlotError(codeOf(thrown.code), thrown.message, more)
  }
  if (thrown instanceof ConnectionLost) {
    const message = 'the connection to the daemon broke'
    return new SandlotError('connection_lost', message, { cause: thrown })
  }
  if (thrown instanceof PayloadTooLarge) {
    return new SandlotError('too_large', `the request is too large: ${thrown.message}`, {
      hint: 'Write long arguments and values of the environment to a file in the sandbox, and give its path to the command.',
      cause: thrown,
    })
  }
  if (thrown instanceof PayloadRefused) {
    return new SandlotError('invalid_request', thrown.message, { cause: thrown })
  }
  if (thrown instanceof MuxBusy) {
    return new SandlotError('rate_limited', thrown.message, { cause: thrown })
  }
  if (thrown instanceof StreamOver || thrown instanceof StreamCancelled) {
    return new SandlotError('cancelled', thrown.message, { cause: thrown })
  }
  return thrown
}

function codeOf(code: string): ErrorCode {
  if (Object.hasOwn(ERROR_CATALOGUE, code)) return code as ErrorCode
  return code === 'limit' ? 'rate_limited' : 'internal'
}

const OUTAGES: ReadonlySet<ErrorCode> = new Set(['unreachable', 'connection_lost', 'draining'])

/** The daemon is away: what may be asked again makes sense on a new connection. */
export function isOutage(error: unknown): error is SandlotError {
  return error instanceof SandlotError && OUTAGES.has(error.code)
}

/** A daemon that recovers what an earlier one left: it will serve. */
export function isStarting(error: unknown): boolean {
  return isCode(error, 'draining') && error.details?.starting === true
}

export function isCode(error: unknown, code: ErrorCode): error is SandlotError {
  return error instanceof SandlotError && error.code === code
}

export function clientClosed(): SandlotError {
  return new SandlotError('cancelled', 'the client was closed', { hint: 'Make a new client.' })
}

/** The reason of an abort as an error. */
export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason ?? 'aborted'))
}
