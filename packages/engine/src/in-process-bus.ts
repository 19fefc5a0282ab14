import { checkBytes, checkInteger, invalid } from './argument.ts'
import type {
  Bus,
  BusMessage,
  RequestContext,
  RequestHandler,
  RequestOptions,
  SubscribeOptions,
} from './bus.ts'
import { type BusDelivery, type BusFaults, createDelivery } from './bus-delivery.ts'
import { Subscription } from './bus-subscription.ts'
import type { Clock } from './clock.ts'
import { EngineError } from './error.ts'
import { BUS_BYTES_MAX, REQUEST_MS_DEFAULT, TIMEOUT_MS_MAX } from './limits.ts'
import { onAbort } from './on-abort.ts'

export interface InProcessBusOptions {
  readonly clock: Clock
  /** Aborts, with the error for those who wait, when the engine closes. */
  readonly closing: AbortSignal
  readonly faults?: BusFaults
}

const SUBJECT = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/
const PATTERN = /^([A-Za-z0-9_-]+|\*)(\.([A-Za-z0-9_-]+|\*))*(\.>)?$|^>$/

/** The bus where everybody lives in one process. */
export class InProcessBus implements Bus {
  readonly #clock: Clock
  readonly #closing: AbortSignal
  readonly #delivery: BusDelivery
  /** Handlers by subject; the first is the next to be asked. */
  readonly #handlers = new Map<string, { handler: RequestHandler }[]>()
  readonly #subscriptions = new Set<Subscription>()

  constructor({ clock, closing, faults }: InProcessBusOptions) {
    this.#clock = clock
    this.#closing = closing
    this.#delivery = createDelivery(clock, faults)
  }

  async request(
    subject: string,
    payload: Uint8Array,
    options: RequestOptions = {},
  ): Promise<Uint8Array> {
    const { timeoutMs = REQUEST_MS_DEFAULT, signal } = options
    checkSubject(subject)
    checkBytes('the request', payload, BUS_BYTES_MAX)
    checkInteger('timeoutMs', timeoutMs, 1, TIMEOUT_MS_MAX)
    for (const source of [signal, this.#closing]) source?.throwIfAborted()
    if (!this.#handlers.has(subject)) throw noResponder(subject)

    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
    const over = new AbortController()
    const late = `no reply to ${subject} within ${timeoutMs} ms`
    const cancelTimer = this.#clock.after(timeoutMs, () =>
      reject(new EngineError('deadline_exceeded', late)),
    )
    const abort = () => reject((signal?.aborted ? signal : this.#closing).reason)
    const stops = [signal, this.#closing].map((source) => onAbort(source, abort))
    this.#delivery(payload, (copy) => {
      this.#handle(subject, copy, over.signal).then(
        (reply) => this.#delivery(reply, resolve),
        (error) => this.#delivery(NOTHING, () => reject(error)),
      )
    })
    try {
      return await promise
    } finally {
      cancelTimer()
      for (const stop of stops) stop()
      over.abort(new EngineError('deadline_exceeded', `nobody waits for ${subject} any more`))
    }
  }

  serve(subject: string, handler: RequestHandler): Disposable {
    checkSubject(subject)
    const entry = { handler }
    const present = this.#handlers.get(subject)
    if (present) present.push(entry)
    else this.#handlers.set(subject, [entry])
    return {
      [Symbol.dispose]: () => {
        const left = this.#handlers.get(subject)?.filter((other) => other !== entry) ?? []
        if (left.length > 0) this.#handlers.set(subject, left)
        else this.#handlers.delete(subject)
      },
    }
  }

  publish(subject: string, payload: Uint8Array): void {
    checkSubject(subject)
    checkBytes('the message', payload, BUS_BYTES_MAX)
    this.#closing.throwIfAborted()
    for (const subscription of this.#subscriptions) {
      if (!subscription.matches(subject)) continue
      this.#delivery(payload, (copy) => subscription.push({ subject, payload: copy }))
    }
  }

  subscribe(pattern: string, { signal }: SubscribeOptions = {}): AsyncIterableIterator<BusMessage> {
    if (!PATTERN.test(pattern)) throw invalid('pattern', 'is not a subject pattern')
    const subscription = new Subscription(pattern, [signal, this.#closing], () =>
      this.#subscriptions.delete(subscription),
    )
    this.#subscriptions.add(subscription)
    return subscription
  }

  /** The handlers of a subject take turns; the one that was asked goes to the end. */
  async #handle(subject: string, payload: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const entries = this.#handlers.get(subject)
    const entry = entries?.shift()
    if (entries === undefined || entry === undefined) throw noResponder(subject)
    entries.push(entry)
    const context: RequestContext = { subject, signal }
    let reply: Uint8Array
    try {
      reply = await entry.handler(payload, context)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      throw new EngineError('handler_failed', `${subject}: ${message}`, { cause: error })
    }
    checkBytes('the reply', reply, BUS_BYTES_MAX)
    return reply
  }
}

const NOTHING = new Uint8Array(0)

function checkSubject(subject: string): void {
  if (typeof subject === 'string' && subject.length <= 256 && SUBJECT.test(subject)) return
  throw invalid('subject', 'must be tokens of A-Z a-z 0-9 _ - joined by dots, 256 at most')
}

function noResponder(subject: string): EngineError {
  return new EngineError('no_responder', `nobody serves ${subject}`)
}
