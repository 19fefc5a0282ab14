/** Tells an OCI archive from a tar of files, by the names in it. */
import { type FileHandle, open } from 'node:fs/promises'

const RECORD_BYTES = 512

/** Undefined where the file is no plain tar, for instance a compressed one. */
export async function archiveKind(path: string): Promise<'oci' | 'tar' | undefined> {
  await using file = await open(path)
  let kind: 'tar' | undefined
  for (let at = 0; ; ) {
    const record = await recordAt(file, at)
    if (!record || record.every((byte) => byte === 0)) return kind
    if (!isHeader(record)) return undefined
    if (textOf(record, 0, 100).replace(/^\.\//, '') === 'oci-layout') return 'oci'
    kind = 'tar'
    at += RECORD_BYTES * (1 + Math.ceil(sizeOf(record) / RECORD_BYTES))
  }
}

async function recordAt(file: FileHandle, at: number): Promise<Buffer | undefined> {
  const record = Buffer.alloc(RECORD_BYTES)
  const { bytesRead } = await file.read(record, 0, RECORD_BYTES, at)
  return bytesRead === RECORD_BYTES ? record : undefined
}

function isHeader(record: Buffer): boolean {
  let sum = 0
  for (const [at, byte] of record.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte
  return sum === Number.parseInt(textOf(record, 148, 8).trim(), 8)
}

/** Octal digits, or base 256 where the first bit is set. */
function sizeOf(record: Buffer): number {
  if (((record[124] ?? 0) & 0x80) !== 0) return Number(record.readBigUInt64BE(128))
  return Number.parseInt(textOf(record, 124, 12).trim() || '0', 8)
}

function textOf(record: Buffer, start: number, length: number): string {
  const end = record.indexOf(0, start)
  return record.toString('latin1', start, end < 0 ? start + length : Math.min(end, start + length))
}
