import { LIMITS } from '@sandlot/protocol'

/** The first and the last bytes of what passes, in bounded memory. */
export class HeadTail {
  readonly #head: Uint8Array[] = []
  #headLeft: number = LIMITS.outputHeadBytes
  readonly #tail: Uint8Array[] = []
  #tailBytes = 0

  add(bytes: Uint8Array): void {
    const head = bytes.subarray(0, this.#headLeft)
    if (head.length > 0) this.#head.push(head)
    this.#headLeft -= head.length
    const rest = bytes.subarray(head.length)
    if (rest.length === 0) return
    this.#tail.push(rest)
    this.#tailBytes += rest.length
    for (let oldest = this.#tail[0]; oldest; oldest = this.#tail[0]) {
      if (this.#tailBytes - oldest.length < LIMITS.outputTailBytes) break
      this.#tail.shift()
      this.#tailBytes -= oldest.length
    }
  }

  bytes(): Buffer {
    const tail = Buffer.concat(this.#tail)
    return Buffer.concat([
      ...this.#head,
      tail.subarray(Math.max(0, tail.length - LIMITS.outputTailBytes)),
    ])
  }
}
