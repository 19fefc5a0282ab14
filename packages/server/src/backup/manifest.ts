/**
 * A backup is a tar:
 *
 * ```
 * sandlot-backup.json      what it is, first
 * data/<path>              files of a data directory
 * files.jsonl              path, size and digest of each of them, last: without it the backup is not whole
 * ```
 */
import { z } from 'zod'

export const BACKUP_FORMAT = 1
export const HEADER_NAME = 'sandlot-backup.json'
export const FILES_NAME = 'files.jsonl'
export const DATA_PREFIX = 'data/'

export const backupHeader = z.object({
  format: z.number(),
  /** Of the daemon. */
  version: z.string(),
  createdAtMs: z.number(),
  /** With images and saved memory. */
  images: z.boolean(),
})
export type BackupHeader = z.infer<typeof backupHeader>

/** A path that stays below where it is unpacked. */
const dataPath = z
  .string()
  .regex(/^[\w.@=:-]+(\/[\w.@=:-]+)*$/)
  .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'))

export const backedUpFile = z.object({
  path: dataPath,
  sizeBytes: z.number().int().nonnegative(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
})
export type BackedUpFile = z.infer<typeof backedUpFile>
