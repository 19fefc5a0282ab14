import type { Fate } from './driver.ts'

export const DRIVER_ERROR_CODES = [
  /** The sandbox did not come up; a retry may help. */
  'create_failed',
  /** A checkpoint of another runtime, agent, format or processor, or a damaged one. */
  'snapshot_incompatible',
  /** A checkpoint could not be taken; the sandbox lives on. */
  'checkpoint_failed',
  /** The disk has no room for a checkpoint. */
  'no_space',
  /** The runtime knows nothing of the version of the machine's GPU driver. */
  'gpu_driver_unsupported',
  /** The driver or the machine can't do this. */
  'unsupported',
  /** A world would not end in time. */
  'world_not_empty',
  /** The sandbox ended before or during the call; `fate` tells how. */
  'sandbox_gone',
] as const
export type DriverErrorCode = (typeof DRIVER_ERROR_CODES)[number]

/** A failure of the platform, never of a workload. */
export class DriverError extends Error {
  override readonly name = 'DriverError'
  readonly code: DriverErrorCode
  /** What to do about it, for a person. */
  readonly hint: string
  readonly fate?: Fate

  constructor(
    code: DriverErrorCode,
    message: string,
    options: { hint: string; fate?: Fate; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
    if (options.fate) this.fate = options.fate
  }
}
