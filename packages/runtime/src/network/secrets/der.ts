/** The few forms of DER that a certificate is made of. */

export function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

export function set(...parts: readonly Buffer[]): Buffer {
  return tagged(0x31, Buffer.concat(parts))
}

/** `[number]` around something. */
export function context(number: number, content: Buffer): Buffer {
  return tagged(0xa0 | number, content)
}

/** `[number]` in the place of a form's own tag. */
export function contextValue(number: number, content: Buffer): Buffer {
  return tagged(0x80 | number, content)
}

/** Not negative. */
export function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.of(0) : bytes.subarray(first)
  const isHigh = ((digits[0] as number) & 0x80) !== 0
  return tagged(0x02, isHigh ? Buffer.concat([Buffer.of(0), digits]) : digits)
}

export function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.of(value ? 0xff : 0))
}

export function octets(content: Buffer): Buffer {
  return tagged(0x04, content)
}

/** Whole bytes; `unused` bits at the end of the last one say nothing. */
export function bits(content: Buffer, unused = 0): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.of(unused), content]))
}

export function utf8(text: string): Buffer {
  return tagged(0x0c, Buffer.from(text))
}

/** `1.2.840.10045.4.3.2` */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** From 1950 to 2049, as the standard wants it. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(2, 14)
  return tagged(0x17, Buffer.from(`${digits}Z`))
}

function base128(value: number): number[] {
  const digits = [value & 0x7f]
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80)
  return digits
}

function tagged(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content])
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff)
  return [0x80 | bytes.length, ...bytes]
}
