import { idKind } from '@sandlot/protocol'
import { imageLimits } from './limits.ts'

export const IMAGE_ERROR_CODES = [
  /** No image has this id. */
  'image_unknown',
  /** Contents that the build needs are not there; `blobs` are their digests. */
  'blob_unknown',
  /** What was asked for can't be an image: bad names, a damaged or hostile archive, a digest that doesn't match. */
  'image_source_invalid',
  /** The build itself failed; `logTail` and `exitCode` tell how. */
  'image_build_failed',
  /** The registry has no such image or tag. */
  'registry_image_unknown',
  /** The registry wants credentials that this machine has not, or refuses them. */
  'registry_denied',
  /** The registry did not answer, or not as one. */
  'registry_unreachable',
  /** A sandbox needs it. */
  'image_in_use',
  /** What was asked for can't run in it: its C library is another one, or too old. */
  'image_unfit',
  /** No space left for images on this machine. */
  'disk_full',
] as const
export type ImageErrorCode = (typeof IMAGE_ERROR_CODES)[number]

export interface ImageErrorOptions {
  readonly hint: string
  readonly logTail?: readonly string[]
  readonly exitCode?: number
  readonly blobs?: readonly string[]
  readonly cause?: unknown
}

export class ImageError extends Error {
  override readonly name = 'ImageError'
  readonly code: ImageErrorCode
  /** What to do about it, for a person. */
  readonly hint: string
  /** The last lines that the build wrote. */
  readonly logTail: readonly string[]
  readonly exitCode?: number
  readonly blobs: readonly string[]

  constructor(code: ImageErrorCode, message: string, options: ImageErrorOptions) {
    super(message, { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.logTail = options.logTail ?? []
    this.blobs = options.blobs ?? []
    if (options.exitCode !== undefined) this.exitCode = options.exitCode
  }
}

export function isDiskFull(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  const { code, errcode } = cause as NodeJS.ErrnoException & { errcode?: number }
  return code === 'ENOSPC' || code === 'EDQUOT' || errcode === SQLITE_FULL
}

/** Of a lock, which is an empty database. */
const SQLITE_FULL = 13

export function diskFull(directory: string, cause: unknown): ImageError {
  return new ImageError('disk_full', `No space left for images in ${directory}.`, {
    hint: 'Remove images that are no longer needed, or free space on that disk.',
    cause,
  })
}

export function imageUnknown(id: string): ImageError {
  return new ImageError('image_unknown', `There is no image ${JSON.stringify(id)}.`, {
    hint:
      idKind(id) === undefined
        ? "An image that is there has an id (im_…), a snapshot or a template its id or name. Others are described: Image.debian('bookworm') or Image.registry('python:3.12-slim'), on the command line debian:bookworm or registry:python:3.12-slim."
        : 'Build it first, or list the images to see which are here.',
  })
}

export function sourceInvalid(message: string, hint: string, cause?: unknown): ImageError {
  return new ImageError('image_source_invalid', message, { hint, cause })
}

/** Not passed over: the layers that it names would count as nobody's. */
export function recordUnreadable(path: string, cause: unknown): ImageError {
  return sourceInvalid(
    `The record ${path} of an image can't be read: another version of sandlot wrote it, or it is damaged.`,
    'Start the version that wrote it. Or move this file away: the image is then unknown, and its layers are removed.',
    cause,
  )
}

/** Whether it is what `recordUnreadable` says, of an image that was asked for by its id. */
export function isUnreadableRecord(error: unknown): error is ImageError {
  return error instanceof ImageError && error.code === 'image_source_invalid'
}

export function blobsUnknown(blobs: readonly string[]): ImageError {
  const more = blobs.length > 1 ? ` and ${blobs.length - 1} more` : ''
  return new ImageError('blob_unknown', `The content ${blobs[0]}${more} is not here.`, {
    hint: 'Upload it, and build again.',
    blobs,
  })
}

export function tooManyEntries(): ImageError {
  return sourceInvalid(
    `The layers of the image have more than ${imageLimits.imageEntriesMax} entries.`,
    'Leave out what nobody needs, or begin at another image.',
  )
}
