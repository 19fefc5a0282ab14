/**
 * Everything the engine itself refuses or fails with. The set is closed: a caller may switch over `code` and be done.
 * An aborted call is the one exception: it rejects with the signal's own reason.
 */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly code: EngineErrorCode
  /** Whether the same call, unchanged, may succeed later. */
  readonly retry: boolean
  /** What to do about it, as a sentence for a person. */
  readonly hint: string
  /** The facts of this case, e.g. `{ head }` of a `log_conflict`. Plain JSON values. */
  readonly details: EngineErrorDetails

  constructor(code: EngineErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.retry = ENGINE_ERRORS[code].retry
    this.hint = options.hint ?? ENGINE_ERRORS[code].hint
    this.details = options.details ?? {}
  }
}

/** Facts of one error; which are there is said at the code. */
export type EngineErrorDetails = Readonly<Record<string, string | number | boolean | null>>

export interface EngineErrorOptions {
  /** Replaces the code's own hint where the case has a better one. */
  readonly hint?: string
  readonly details?: EngineErrorDetails
  readonly cause?: unknown
}

/** Code → whether a retry may help, and what to do. */
export const ENGINE_ERRORS = {
  /** An argument is out of its range or not well formed. Details: `argument`. */
  invalid_argument: { retry: false, hint: 'Correct the argument.' },
  /** A payload is larger than its limit. Details: `sizeBytes`, `limitBytes`. */
  too_large: { retry: false, hint: 'Store the payload as a blob and pass its digest.' },
  /** The stream's head is not the expected one: another writer was here. Details: `head` (null: no record yet). */
  log_conflict: { retry: false, hint: 'Read the records after your position, then decide again.' },
  /** Records after the cursor were trimmed. Details: `trimmed`, the last position that is gone. */
  log_trimmed: { retry: false, hint: 'Load the latest checkpoint and read on from its position.' },
  /** The key's revision is not the expected one. Details: `revision` (null: no such key). */
  kv_conflict: { retry: false, hint: 'Get the key again, then decide again.' },
  /** The message was acknowledged, given back, or leased to somebody else since. */
  lease_lost: { retry: false, hint: 'Drop the work: somebody else has it or has finished it.' },
  /** The stream was deleted while it was read, or no blob has this digest. */
  not_found: { retry: false, hint: 'Check the name; what it named may have been deleted.' },
  /** The bytes do not have the digest that was expected of them. Details: `expected`, `actual`. */
  blob_mismatch: { retry: false, hint: 'Send the bytes again; they changed on the way.' },
  /** A stored blob no longer has its digest. It was set aside, and putting it again mends it. */
  blob_corrupt: {
    retry: false,
    hint: 'Put the blob again, and check the disk of the data directory.',
  },
  /** Nobody serves this subject at the moment. */
  no_responder: { retry: true, hint: 'Check that the node or service is running.' },
  /** No reply within the time given. The request may still have had its effect. */
  deadline_exceeded: {
    retry: true,
    hint: 'Check whether the request took effect before sending it again.',
  },
  /** The handler of a request threw; its message is in this error's message. */
  handler_failed: { retry: false, hint: 'See the log of the service that handled the request.' },
  /** A subscriber fell too far behind and messages for it were dropped. */
  slow_consumer: { retry: true, hint: 'Subscribe again, and take the state anew.' },
  /** More requests wait than the limit allows. Nothing of this one was stored. */
  backlog_full: { retry: true, hint: 'Slow down: await earlier calls before making new ones.' },
  /** The disk of the data directory is full. Nothing of this call was stored. */
  disk_full: { retry: true, hint: 'Free space on the disk of the data directory.' },
  /** The data was written by a newer program. Details: `found`, `known`. */
  schema_newer: { retry: false, hint: 'Start the newer program, or use another data directory.' },
  /** Another live process has the data directory. Details: `pid` (null: not known yet). */
  directory_locked: { retry: false, hint: 'Stop that process, or use another data directory.' },
  /** The data directory cannot be created, read or written, or holds something that is not ours. */
  directory_unusable: { retry: false, hint: 'Check the path and its permissions.' },
  /** Reading or writing failed for another reason; after a failed flush the engine refuses all further calls. */
  storage_failed: {
    retry: false,
    hint: 'Check the disk of the data directory, then start the program again.',
  },
  /** The engine was closed, or is closing. */
  closed: { retry: false, hint: 'Open the engine again.' },
} as const satisfies Record<string, { retry: boolean; hint: string }>

export type EngineErrorCode = keyof typeof ENGINE_ERRORS

/** Whether `error` is the engine's with this code. */
export function isEngineError(error: unknown, code: EngineErrorCode): error is EngineError {
  return error instanceof EngineError && error.code === code
}
