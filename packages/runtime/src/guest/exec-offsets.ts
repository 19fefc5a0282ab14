import type { ExecChunk } from './guest.ts'

interface Mark {
  /** Bytes of the channel that had come when it was said. */
  readonly at: number
  /** Where the next byte stands in the command's output. */
  readonly offset: number
}

/** Where the bytes of one output channel stand in the command's output. */
export class ExecOffsets {
  readonly #channel: ExecChunk['channel']
  readonly #marks: Mark[] = []
  #readBytes = 0
  #offset = 0

  constructor(channel: ExecChunk['channel'], from: number) {
    this.#channel = channel
    this.#offset = from
  }

  /** The agent says where what comes next stands. Gives how many such marks are not reached yet. */
  mark(receivedBytes: number, offset: number): number {
    return this.#marks.push({ at: receivedBytes, offset })
  }

  /** Bytes in the order they came, cut where a mark says that something is missing. */
  place(bytes: Uint8Array): ExecChunk[] {
    const chunks: ExecChunk[] = []
    let rest = bytes
    while (rest.length > 0) {
      this.#passMarks()
      const next = this.#marks[0]
      const length = Math.min(rest.length, (next?.at ?? Number.POSITIVE_INFINITY) - this.#readBytes)
      const offset = this.#offset
      chunks.push({ channel: this.#channel, bytes: rest.subarray(0, length), offset })
      this.#readBytes += length
      this.#offset += length
      rest = rest.subarray(length)
    }
    return chunks
  }

  #passMarks(): void {
    for (let mark = this.#marks[0]; mark && mark.at <= this.#readBytes; mark = this.#marks[0]) {
      this.#offset = mark.offset
      this.#marks.shift()
    }
  }
}
