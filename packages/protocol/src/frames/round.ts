import type { FrameWriter } from './encode.ts'
import type { LiveStream } from './live-stream.ts'

/** Streams that have something to write, served one frame each in turn. */
export class Round {
  #streams: LiveStream[] = []
  #head = 0

  add(stream: LiveStream): void {
    if (stream.queued) return
    stream.queued = true
    this.#streams.push(stream)
  }

  /** Writes one frame of the next stream. False when no stream is left. */
  writeTurn(writer: FrameWriter): boolean {
    const stream = this.#streams[this.#head]
    if (!stream) return false
    this.#head++
    stream.queued = false
    if (stream.writeTurn(writer)) this.add(stream)
    if (this.#head * 2 >= this.#streams.length) {
      this.#streams = this.#streams.slice(this.#head)
      this.#head = 0
    }
    return true
  }
}
