import { ERROR_CATALOGUE, type ErrorCode, type ErrorEnvelope } from './errors.ts'
import type { Fault } from './outcomes.ts'

/**
 * An error that a caller meets: thrown by the server inside, carried as an envelope, thrown again by the SDK.
 * Decide by `fault` and `retry`; show `message` and `hint` to a person.
 */
export class SandlotError extends Error {
  override readonly name = 'SandlotError'
  readonly code: ErrorCode
  readonly hint: string
  readonly details?: Record<string, unknown>

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint ?? ERROR_CATALOGUE[code].hint
    if (options.details) this.details = options.details
  }

  get fault(): Fault {
    return ERROR_CATALOGUE[this.code].fault
  }

  get retry(): boolean {
    return ERROR_CATALOGUE[this.code].retry
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status
  }

  toEnvelope(): ErrorEnvelope {
    const { code, message, fault, retry, hint, details } = this
    return { error: { code, message, fault, retry, hint, ...(details ? { details } : {}) } }
  }

  static fromEnvelope(envelope: ErrorEnvelope): SandlotError {
    const { code, message, hint, details } = envelope.error
    return new SandlotError(code, message, { hint, ...(details ? { details } : {}) })
  }
}
