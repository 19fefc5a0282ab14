/**
 * What a step that copies is known by: the SHA-256 of one line for each entry of its tar, in the tar's order. Times are not in it, so the
 * same files are the same step wherever and whenever they were checked out; the tar itself keeps them.
 */
export interface CopiedEntry {
  readonly kind: string
  /** Below the destination, without empty names and `.`. One character is one byte, here and in `target`. */
  readonly path: string
  /** Permission bits. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Of a link. */
  readonly target?: string | undefined
  /** Of a file. */
  readonly sizeBytes?: number | undefined
  /** Of a file: SHA-256 of its bytes in hexadecimal digits. */
  readonly sha256?: string | undefined
}

/** The line of an entry, to be hashed as UTF-8. */
export function copiedEntryLine(entry: CopiedEntry): string {
  const { kind, path, mode, uid, gid, target, sizeBytes, sha256 } = entry
  const fields = [kind, path, mode, uid, gid, target ?? null, sizeBytes ?? null, sha256 ?? null]
  return `${JSON.stringify(fields)}\n`
}
