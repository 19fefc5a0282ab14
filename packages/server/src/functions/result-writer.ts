import type { Log } from '@sandlot/engine'
import { FUNCTION_LIMITS } from './limits.ts'

interface Waiting {
  readonly key: string
  readonly bytes: Uint8Array
  readonly written: () => void
  readonly failed: (error: unknown) => void
}

/** Appends results, many in one commit where many come at once. The append is what makes a task done: it is deduplicated by its key. */
export class ResultWriter {
  readonly #log: Log
  readonly #waiting = new Map<string, Waiting[]>()
  #writing = false

  constructor(log: Log) {
    this.#log = log
  }

  append(stream: string, key: string, bytes: Uint8Array): Promise<void> {
    return new Promise((written, failed) => {
      const waiting = this.#waiting.get(stream) ?? []
      this.#waiting.set(stream, waiting)
      waiting.push({ key, bytes, written, failed })
      if (!this.#writing) void this.#write()
    })
  }

  async #write(): Promise<void> {
    this.#writing = true
    // What comes in the same turn goes along.
    await Promise.resolve()
    for (const [stream, waiting] of this.#waiting) {
      const batch = takeWhatFits(waiting)
      if (waiting.length === 0) this.#waiting.delete(stream)
      try {
        const dedup = batch.map(({ key }) => key)
        await this.#log.append(
          stream,
          batch.map(({ bytes }) => bytes),
          { dedup },
        )
        for (const { written } of batch) written()
      } catch (error) {
        for (const { failed } of batch) failed(error)
      }
    }
    this.#writing = false
    if (this.#waiting.size > 0) void this.#write()
  }
}

function takeWhatFits(waiting: Waiting[]): Waiting[] {
  let sizeBytes = 0
  let count = 0
  for (const { bytes } of waiting) {
    sizeBytes += bytes.length
    if (
      count > 0 &&
      (sizeBytes > FUNCTION_LIMITS.appendBytes || count >= FUNCTION_LIMITS.appendRecords)
    )
      break
    count += 1
  }
  return waiting.splice(0, count)
}
