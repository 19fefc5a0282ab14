import type { MuxStream } from '@sandlot/protocol/frames'
import type { GuestNews } from './guest.ts'
import { GuestError } from './guest-error.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'

interface Waiter {
  readonly resolve: (result: IteratorResult<GuestNews>) => void
  readonly reject: (reason: unknown) => void
}

/**
 * News of a guest that nobody has read yet. The same news waits once, so that a world that meets its limit again and
 * again costs nothing; a guest that still has more than the bound is lost.
 */
export class NewsQueue implements AsyncIterableIterator<GuestNews> {
  readonly #stream: MuxStream
  readonly #link: GuestLink
  readonly #waiting = new Map<string, GuestNews>()
  #waiter: Waiter | undefined
  #over: { failure?: unknown } | undefined

  constructor(link: GuestLink, stream: MuxStream) {
    this.#link = link
    this.#stream = stream
    stream.onEvent = (event) => this.#heard(event)
    stream.done.then(
      () => this.#finish({}),
      (error) => this.#finish({ failure: link.failure(error) }),
    )
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<GuestNews>> {
    for (const [key, news] of this.#waiting) {
      this.#waiting.delete(key)
      return Promise.resolve({ done: false, value: news })
    }
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
      if (this.#over) this.#finish(this.#over)
    })
  }

  async return(): Promise<IteratorResult<GuestNews>> {
    this.#stream.abort(new GuestError('cancelled', 'nobody wants the news any more'))
    return { done: true, value: undefined }
  }

  #heard(event: Record<string, unknown>): void {
    const news = this.#link.parse('its news', event, messages.news)
    const waiter = this.#waiter
    this.#waiter = undefined
    if (waiter) waiter.resolve({ done: false, value: news })
    else {
      this.#waiting.set(JSON.stringify(news), news)
      if (this.#waiting.size > GUEST_LIMITS.newsQueue) throw this.#link.breach('too many news')
    }
  }

  #finish(over: { failure?: unknown }): void {
    this.#over = over
    const waiter = this.#waiter
    this.#waiter = undefined
    if ('failure' in over) waiter?.reject(over.failure)
    else waiter?.resolve({ done: true, value: undefined })
  }
}
