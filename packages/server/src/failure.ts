import { getSystemErrorMessage } from 'node:util'
import { EngineError, type EngineErrorCode } from '@sandlot/engine'
import { type ErrorCode, SandlotError } from '@sandlot/protocol'
import { ConnectionLost, StreamCancelled, StreamOver } from '@sandlot/protocol/frames'
import {
  DriverError,
  type DriverErrorCode,
  GuestError,
  type GuestErrorCode,
  GuestLost,
  GuestTimeout,
  ImageError,
  type ImageErrorCode,
} from '@sandlot/runtime'

/** Any failure as one that a caller may meet. What nobody foresaw is `internal`, and its own message stays in the log. */
export function toSandlotError(error: unknown): SandlotError {
  if (error instanceof SandlotError) return error
  if (error instanceof GuestError) {
    return new SandlotError(GUEST_CODES[error.code], withErrno(error), { cause: error })
  }
  if (error instanceof GuestTimeout) {
    return new SandlotError('timeout', error.message, { cause: error })
  }
  if (error instanceof GuestLost) {
    return new SandlotError('sandbox_lost', error.message, { cause: error })
  }
  if (error instanceof DriverError) {
    const { message, hint } = error
    return new SandlotError(DRIVER_CODES[error.code], message, { hint, cause: error })
  }
  if (error instanceof ImageError) {
    const { message, hint, logTail, exitCode, blobs } = error
    const details = {
      ...(logTail.length > 0 ? { log: logTail } : {}),
      ...(blobs.length > 0 ? { blobs } : {}),
      ...(exitCode === undefined ? {} : { exitCode }),
    }
    const known = Object.keys(details).length > 0 ? { details } : {}
    return new SandlotError(IMAGE_CODES[error.code], message, { hint, ...known, cause: error })
  }
  if (error instanceof EngineError) return fromEngine(error)
  if (error instanceof StreamCancelled) return new SandlotError('cancelled', error.message)
  if (error instanceof ConnectionLost || error instanceof StreamOver) {
    return new SandlotError('cancelled', 'the client is gone', { cause: error })
  }
  if (isNamed(error, 'TimeoutError')) {
    return new SandlotError('timeout', 'it took longer than allowed', { cause: error })
  }
  if (isNamed(error, 'AbortError'))
    return new SandlotError('cancelled', 'it was cancelled', { cause: error })
  return new SandlotError('internal', 'the daemon failed; its log says more', { cause: error })
}

/** What the driver or the image store refuses is for a person to mend; what nobody foresaw stays as it is. */
export function fromRuntime(error: unknown): unknown {
  const isForeseen = error instanceof DriverError || error instanceof ImageError
  return isForeseen ? toSandlotError(error) : error
}

const GUEST_CODES = {
  invalid: 'invalid_request',
  unsupported: 'unsupported',
  not_found: 'file_not_found',
  exists: 'file_exists',
  is_directory: 'file_is_directory',
  not_directory: 'file_not_directory',
  not_file: 'file_not_regular',
  not_empty: 'directory_not_empty',
  permission: 'permission_denied',
  no_space: 'no_space',
  too_large: 'too_large',
  world_not_open: 'invalid_request',
  world_unknown: 'invalid_request',
  exec_unknown: 'exec_unknown',
  exec_exists: 'idempotency_conflict',
  limit: 'sandbox_limit',
  busy: 'sandbox_busy',
  cancelled: 'cancelled',
  io: 'file_failed',
  refused: 'port_refused',
} as const satisfies Record<GuestErrorCode, ErrorCode>

/** Where a system call failed the guest says only what it was done to, unless it names the error; the kernel's own words say why. */
function withErrno({ message, errno = 0 }: GuestError): string {
  const isExplained = /\(E[A-Z0-9]+\)/.test(message)
  return errno > 0 && !isExplained ? `${message}: ${getSystemErrorMessage(-errno)}` : message
}

const DRIVER_CODES = {
  create_failed: 'create_failed',
  snapshot_incompatible: 'snapshot_incompatible',
  checkpoint_failed: 'snapshot_failed',
  no_space: 'disk_full',
  gpu_driver_unsupported: 'gpu_driver_unsupported',
  unsupported: 'unsupported',
  world_not_empty: 'timeout',
  sandbox_gone: 'sandbox_lost',
} as const satisfies Record<DriverErrorCode, ErrorCode>

const IMAGE_CODES = {
  image_unknown: 'image_unknown',
  blob_unknown: 'blob_unknown',
  image_source_invalid: 'image_source_invalid',
  image_build_failed: 'image_build_failed',
  registry_image_unknown: 'registry_image_unknown',
  registry_denied: 'registry_denied',
  registry_unreachable: 'registry_unreachable',
  image_in_use: 'image_in_use',
  image_unfit: 'function_invalid',
  disk_full: 'disk_full',
} as const satisfies Record<ImageErrorCode, ErrorCode>

const ENGINE_CODES: Partial<Record<EngineErrorCode, ErrorCode>> = {
  too_large: 'too_large',
  blob_mismatch: 'digest_mismatch',
  not_found: 'not_found',
  disk_full: 'disk_full',
  backlog_full: 'rate_limited',
  deadline_exceeded: 'timeout',
  closed: 'draining',
}

function fromEngine(error: EngineError): SandlotError {
  const code = ENGINE_CODES[error.code]
  if (code === undefined) {
    return new SandlotError('internal', 'the daemon’s storage failed; its log says more', {
      cause: error,
    })
  }
  return new SandlotError(code, error.message, { cause: error })
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name
}
