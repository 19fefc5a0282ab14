import { SendCredit } from './credit.ts'
import type { FrameWriter } from './encode.ts'
import { FRAME, FRAME_LIMITS } from './frame.ts'
import { StreamOver } from './stream-error.ts'

/** Sends that wait on one channel; more are a sender that ignores the promise. */
export const PENDING_SENDS_MAX = 1_024

const NOTHING = new Uint8Array(0)

interface PendingSend {
  readonly bytes: Uint8Array
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}

/** The sending half of one channel: what waits for credit, and the end behind it. */
export class Outlet {
  readonly credit = new SendCredit()
  #pending: PendingSend[] = []
  #head = 0
  /** Bytes of the first pending send that have gone already. */
  #gone = 0
  #end: 'open' | 'wanted' | 'written' = 'open'

  /** Whether a frame can be written now. */
  get ready(): boolean {
    if (this.#head < this.#pending.length) return this.credit.left > 0
    return this.#end === 'wanted'
  }

  /** Whether nothing waits, not even for credit. */
  get idle(): boolean {
    return this.#head === this.#pending.length && this.#end !== 'wanted'
  }

  send(bytes: Uint8Array): Promise<void> {
    if (this.#end !== 'open') return Promise.reject(new StreamOver())
    if (this.#pending.length - this.#head >= PENDING_SENDS_MAX) {
      return Promise.reject(new RangeError(`${PENDING_SENDS_MAX} sends wait: await each one`))
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ bytes, resolve, reject })
    })
  }

  end(): void {
    if (this.#end === 'open') this.#end = 'wanted'
  }

  /** Writes one frame: as much pending data as credit and a frame take, or the end. Only while `ready`. */
  write(writer: FrameWriter, stream: number, channel: number): void {
    if (this.#head === this.#pending.length) {
      this.#end = 'written'
      writer.frame(FRAME.end, channel, stream, NOTHING)
      return
    }
    const length = this.#frameLength()
    this.credit.spend(length)
    writer.begin(FRAME.data, channel, stream, length)
    let left = length
    while (left > 0) {
      const send = this.#pending[this.#head]
      if (!send) throw new Error('a frame longer than what waits')
      const taken = Math.min(left, send.bytes.length - this.#gone)
      writer.append(send.bytes.subarray(this.#gone, this.#gone + taken))
      left -= taken
      this.#gone += taken
      if (this.#gone === send.bytes.length) this.#shift(send)
    }
    writer.finish()
  }

  /** Rejects what waits; nothing is sent on this channel any more. */
  drop(reason: unknown): void {
    const pending = this.#pending.slice(this.#head)
    this.#pending = []
    this.#head = 0
    this.#end = 'written'
    for (const send of pending) send.reject(reason)
  }

  #frameLength(): number {
    const most = Math.min(this.credit.left, FRAME_LIMITS.payload)
    let length = -this.#gone
    for (let i = this.#head; i < this.#pending.length && length < most; i++) {
      length += this.#pending[i]?.bytes.length ?? 0
    }
    return Math.min(length, most)
  }

  #shift(send: PendingSend): void {
    this.#gone = 0
    this.#head++
    if (this.#head === this.#pending.length) {
      this.#pending = []
      this.#head = 0
    }
    send.resolve()
  }
}
