/** What an agent answers when a request fails for a reason inside the sandbox. */
export const GUEST_ERROR_CODES = [
  'invalid',
  'unsupported',
  'not_found',
  'exists',
  'is_directory',
  'not_directory',
  'not_file',
  'not_empty',
  'permission',
  'no_space',
  'too_large',
  'world_not_open',
  'world_unknown',
  'exec_unknown',
  'exec_exists',
  'limit',
  'busy',
  'cancelled',
  'io',
  'refused',
] as const
export type GuestErrorCode = (typeof GUEST_ERROR_CODES)[number]

/** The workload's failure: the request could not be done in the sandbox, which lives on. */
export class GuestError extends Error {
  override readonly name = 'GuestError'
  readonly code: GuestErrorCode
  /** The kernel's error number, with `io` and where the agent knows it. */
  readonly errno?: number

  constructor(code: GuestErrorCode, message: string, options: { errno?: number } = {}) {
    super(message)
    this.code = code
    if (options.errno !== undefined) this.errno = options.errno
  }
}

export const GUEST_LOST_CAUSES = [
  /** End of file on the agent's output: the sandbox is dead. */
  'exited',
  /** The agent broke the protocol or a bound; nothing more from it is believed. */
  'protocol',
  /** The agent did not answer the handshake in time. */
  'no_handshake',
  /** Nothing came for `GUEST_LIMITS.silentMs` although it was asked. */
  'unresponsive',
  /** The pipes could not be opened, read or written. */
  'io',
  /** `close()` was called. */
  'detached',
] as const
export type GuestLostCause = (typeof GUEST_LOST_CAUSES)[number]

/** Our failure: the guest can't be reached any more through this client. */
export class GuestLost extends Error {
  override readonly name = 'GuestLost'
  override readonly cause: GuestLostCause
  /** What led to it: a malformed frame, a system error. */
  readonly reason?: unknown

  constructor(cause: GuestLostCause, detail: string, reason?: unknown) {
    super(`the guest is lost (${cause}): ${detail}`)
    this.cause = cause
    if (reason !== undefined) this.reason = reason
  }
}

/** A request was not answered in its time. The guest may be slow, or busy; it is not lost by this. */
export class GuestTimeout extends Error {
  override readonly name = 'GuestTimeout'
  readonly op: string
  readonly timeoutMs: number

  constructor(op: string, timeoutMs: number) {
    super(`${op} was not answered within ${timeoutMs} ms`)
    this.op = op
    this.timeoutMs = timeoutMs
  }
}
