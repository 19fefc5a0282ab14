import type { BusMessage } from './bus.ts'
import { EngineError } from './error.ts'
import { SUBSCRIBER_BYTES_MAX, SUBSCRIBER_MESSAGES_MAX } from './limits.ts'
import { onAbort } from './on-abort.ts'
import { Wake } from './wake.ts'

/**
 * One subscriber: what waits for it, up to the limits. It begins with its construction and ends when the loop is left, a signal
 * aborts or it was too slow; `ended` is called once then.
 */
export class Subscription implements AsyncIterableIterator<BusMessage> {
  readonly #tokens: readonly string[]
  readonly #ended: () => void
  readonly #news = new Wake()
  #messages: BusMessage[] = []
  #bytes = 0
  #over = false
  #error: unknown
  readonly #forget: readonly (() => void)[]

  constructor(pattern: string, signals: readonly (AbortSignal | undefined)[], ended: () => void) {
    this.#tokens = pattern.split('.')
    this.#ended = ended
    const abort = () => this.#end(signals.find((signal) => signal?.aborted)?.reason)
    for (const signal of signals) signal?.throwIfAborted()
    this.#forget = signals.map((signal) => onAbort(signal, abort))
  }

  matches(subject: string): boolean {
    const given = subject.split('.')
    for (const [index, token] of this.#tokens.entries()) {
      if (token === '>') return given.length > index
      if (given[index] === undefined) return false
      if (token !== '*' && token !== given[index]) return false
    }
    return given.length === this.#tokens.length
  }

  push(message: BusMessage): void {
    if (this.#over) return
    this.#bytes += message.payload.byteLength
    this.#messages.push(message)
    if (this.#messages.length > SUBSCRIBER_MESSAGES_MAX || this.#bytes > SUBSCRIBER_BYTES_MAX) {
      const waiting = `${this.#messages.length} messages with ${this.#bytes} bytes`
      this.#end(new EngineError('slow_consumer', `${waiting} waited for one subscriber`))
    }
    this.#news.wake()
  }

  async next(): Promise<IteratorResult<BusMessage>> {
    for (;;) {
      this.#news.reset()
      const message = this.#messages.shift()
      if (message) {
        this.#bytes -= message.payload.byteLength
        return { done: false, value: message }
      }
      if (this.#over) {
        const error = this.#error
        this.#error = undefined
        if (error !== undefined) throw error
        return { done: true, value: undefined }
      }
      await this.#news.wait([])
    }
  }

  async return(): Promise<IteratorResult<BusMessage>> {
    this.#end(undefined)
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #end(error: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#error = error
    this.#messages = []
    this.#bytes = 0
    for (const forget of this.#forget) forget()
    this.#news.wake()
    this.#ended()
  }
}
