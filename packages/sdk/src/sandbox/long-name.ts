/**
 * Names in a tar that are not UTF-8. tar-stream writes text alone, but the bytes of a long name of GNU's tar are free: one that goes
 * ahead of an entry holds in place of the name in its header.
 */

const BLOCK_BYTES = 512

/** A header and the name with a NUL at its end. `L`: of the next entry, `K`: of what it links to. */
export function longName(name: Buffer, type: 'L' | 'K'): Buffer {
  const sizeBytes = name.length + 1
  const whole = Buffer.alloc(BLOCK_BYTES * (1 + Math.ceil(sizeBytes / BLOCK_BYTES)))
  whole.write('././@LongLink', 0)
  whole.write(`0000644\0${'0000000\0'.repeat(2)}`, 100)
  whole.write(
    `${sizeBytes.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0${' '.repeat(8)}`,
    124,
  )
  whole.write(`${type}`, 156)
  whole.write('ustar  \0', 257)
  const sum = whole.subarray(0, BLOCK_BYTES).reduce((total, byte) => total + byte, 0)
  whole.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  name.copy(whole, BLOCK_BYTES)
  return whole
}
