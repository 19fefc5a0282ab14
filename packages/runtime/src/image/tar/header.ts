/**
 * One 512-byte tar header, as ustar, GNU and pax archives have it. Names are latin1 strings: one character is one byte.
 */
export const RECORD_BYTES = 512

export interface TarHeader {
  readonly name: string
  readonly linkName: string
  /** The type flag; `\0` is given as `0`. */
  readonly type: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  readonly mtimeSeconds: number
  readonly deviceMajor: number
  readonly deviceMinor: number
}

/** The archive is damaged, hostile, or uses what can't be stored. The message says which entry. */
export class TarError extends Error {
  override readonly name = 'TarError'
}

export function isZeroRecord(record: Uint8Array): boolean {
  return record.every((byte) => byte === 0)
}

export function decodeHeader(record: Buffer): TarHeader {
  if (!checksumMatches(record))
    throw new TarError('the tar archive is damaged: bad header checksum')
  const name = text(record, 0, 100)
  const isUstar = record.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isUstar ? text(record, 345, 155) : ''
  const flag = record.toString('latin1', 156, 157)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    linkName: text(record, 157, 100),
    type: flag === '\0' ? '0' : flag,
    mode: number(record, 100, 8) & 0o7777,
    uid: number(record, 108, 8),
    gid: number(record, 116, 8),
    sizeBytes: number(record, 124, 12),
    mtimeSeconds: Math.max(0, number(record, 136, 12)),
    deviceMajor: number(record, 329, 8),
    deviceMinor: number(record, 337, 8),
  }
}

/** Records `<length> <key>=<value>\n` of a pax header; later ones win. */
export function decodePax(body: Buffer): Map<string, string> {
  const records = new Map<string, string>()
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const digits = body.toString('latin1', at, space)
    const length = Number(digits)
    const end = at + length
    if (space < 0 || !/^[0-9]{1,9}$/.test(digits) || end > body.length || end <= space + 1) {
      throw new TarError('the tar archive is damaged: bad pax record')
    }
    const record = body.toString('latin1', space + 1, end - 1)
    const equals = record.indexOf('=')
    if (equals <= 0) throw new TarError('the tar archive is damaged: pax record without a key')
    records.set(record.slice(0, equals), record.slice(equals + 1))
    at = end
  }
  return records
}

function checksumMatches(record: Buffer): boolean {
  let sum = 0
  for (let at = 0; at < RECORD_BYTES; at++) sum += at >= 148 && at < 156 ? 0x20 : (record[at] ?? 0)
  return sum === number(record, 148, 8)
}

function text(record: Buffer, start: number, length: number): string {
  const field = record.toString('latin1', start, start + length)
  const end = field.indexOf('\0')
  return end < 0 ? field : field.slice(0, end)
}

/** Octal digits, or base 256 when the first bit is set. */
function number(record: Buffer, start: number, length: number): number {
  const first = record[start] ?? 0
  if (first & 0x80) return base256(record.subarray(start, start + length))
  const digits = text(record, start, length).trim()
  if (digits === '') return 0
  if (!/^[0-7]+$/.test(digits)) throw new TarError('the tar archive is damaged: bad number')
  return Number.parseInt(digits, 8)
}

function base256(field: Buffer): number {
  if (field[0] === 0xff) return -1
  let value = 0
  field.forEach((byte, index) => {
    value = value * 256 + (index === 0 ? byte & 0x7f : byte)
  })
  if (!Number.isSafeInteger(value)) throw new TarError('the tar archive is damaged: bad number')
  return value
}
