import { FRAME_LIMITS } from './frame.ts'

interface Waiting {
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}

/** Pings that are not answered yet, by the number in their payload. */
export class Pings {
  readonly #waiting = new Map<number, Waiting>()
  #count = 0

  next(): { payload: Uint8Array; answered: Promise<void> } {
    const count = ++this.#count
    const payload = new Uint8Array(FRAME_LIMITS.ping)
    new DataView(payload.buffer).setFloat64(0, count)
    const answered = new Promise<void>((resolve, reject) => {
      this.#waiting.set(count, { resolve, reject })
    })
    return { payload, answered }
  }

  /** A pong nobody waits for is ignored. */
  answer(payload: Uint8Array): void {
    const count = new DataView(payload.buffer, payload.byteOffset, FRAME_LIMITS.ping).getFloat64(0)
    this.#waiting.get(count)?.resolve()
    this.#waiting.delete(count)
  }

  lose(reason: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(reason)
    this.#waiting.clear()
  }
}
