/** Many byte arrays as one buffer, so that a batch crosses the thread boundary as one transfer. */
export interface PackedBytes {
  /** Arrays of each group. */
  readonly counts: readonly number[]
  /** Length of each array, group by group. */
  readonly lengths: readonly number[]
  readonly data: Uint8Array<ArrayBuffer>
}

export function packBytes(groups: readonly (readonly Uint8Array[])[]): PackedBytes {
  const arrays = groups.flat()
  const lengths = arrays.map((array) => array.byteLength)
  const data = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0))
  let offset = 0
  for (const array of arrays) {
    data.set(array, offset)
    offset += array.byteLength
  }
  return { counts: groups.map((group) => group.length), lengths, data }
}

/** Views into the one buffer, grouped as they were packed. */
export function unpackBytes({ counts, lengths, data }: PackedBytes): Uint8Array[][] {
  let offset = 0
  let first = 0
  return counts.map((count) => {
    const views = lengths.slice(first, first + count).map((length) => {
      const view = data.subarray(offset, offset + length)
      offset += length
      return view
    })
    first += count
    return views
  })
}
