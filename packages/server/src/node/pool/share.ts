/** Sandboxes of one kind that are to wait. */
export interface Wish {
  readonly wanted: number
  /** What one of them takes of the machine's memory. */
  readonly bytes: number
}

export interface Bounds {
  /** Of all kinds together. */
  readonly bytes: number
  readonly count: number
}

/** How many of each kind may wait: one of each in turn, as long as one more fits, so that no kind takes the place of all others. */
export function share(wishes: readonly Wish[], bounds: Bounds): readonly number[] {
  const given = wishes.map(() => 0)
  let { bytes, count } = bounds
  let open = wishes.map((_, index) => index)
  while (open.length > 0) {
    open = open.filter((index) => {
      const wish = wishes[index] as Wish
      const before = given[index] as number
      if (before >= wish.wanted || wish.bytes > bytes || count < 1) return false
      given[index] = before + 1
      bytes -= wish.bytes
      count -= 1
      return true
    })
  }
  return given
}
