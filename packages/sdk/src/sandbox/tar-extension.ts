/**
 * Headers that say more about the entry after them. tar-stream writes text alone, and a name with all else that it says; the bytes of a
 * long name of GNU's tar are free, and one that goes ahead of an entry holds in place of the name in its header.
 */

const BLOCK_BYTES = 512

/** A name that need not be text. `L`: of the next entry, `K`: of what it links to. */
export function longName(name: Buffer, type: 'L' | 'K'): Buffer {
  return extension(Buffer.concat([name, Buffer.alloc(1)]), type)
}

/** One record of pax about the next entry. */
export function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`
  let length = rest.length + 1
  // The length counts its own digits.
  while (`${length}${rest}`.length !== length) length += 1
  return extension(Buffer.from(`${length}${rest}`), 'x')
}

function extension(content: Buffer, type: 'L' | 'K' | 'x'): Buffer {
  const sizeBytes = content.length
  const whole = Buffer.alloc(BLOCK_BYTES * (1 + Math.ceil(sizeBytes / BLOCK_BYTES)))
  whole.write('././@LongLink', 0)
  whole.write(`0000644\0${'0000000\0'.repeat(2)}`, 100)
  whole.write(
    `${sizeBytes.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0${' '.repeat(8)}`,
    124,
  )
  whole.write(type, 156)
  whole.write('ustar  \0', 257)
  const sum = whole.subarray(0, BLOCK_BYTES).reduce((total, byte) => total + byte, 0)
  whole.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  content.copy(whole, BLOCK_BYTES)
  return whole
}
