import { z } from 'zod'
import { kernelText } from './kernel-text.ts'
import { LIMITS } from './limits.ts'

export const FILE_KINDS = ['file', 'directory', 'symlink', 'fifo', 'socket', 'device'] as const
export type FileKind = (typeof FILE_KINDS)[number]

/**
 * A path inside a sandbox, absolute or below the image's working directory. Text that is not UTF-8 on the file system travels as
 * `pathBase64`.
 */
export const sandboxPath = kernelText.min(1, 'the path is empty').max(LIMITS.pathBytes)

export const fileStat = z.object({
  kind: z.enum(FILE_KINDS),
  sizeBytes: z.number(),
  /** Permission bits, e.g. 0o644. */
  mode: z.number(),
  uid: z.number(),
  gid: z.number(),
  mtimeMs: z.number(),
  /** Where a symlink points. */
  target: z.string().optional(),
})
export type FileStat = z.infer<typeof fileStat>

export const fileEntry = z.object({
  /** Invalid UTF-8 replaced; then `nameBase64` has the exact bytes. */
  name: z.string(),
  nameBase64: z.string().optional(),
  kind: z.enum(FILE_KINDS),
  sizeBytes: z.number(),
  mode: z.number(),
  mtimeMs: z.number(),
})
export type FileEntry = z.infer<typeof fileEntry>
