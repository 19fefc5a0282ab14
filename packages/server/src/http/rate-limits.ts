import { SandlotError } from '@sandlot/protocol'
import { SERVER_LIMITS } from '../limits.ts'
import { type Caller, DAEMON_KEY } from './keys.ts'

export interface RateLimitOptions {
  /** Requests of one key in a second, over HTTP and the WebSocket together; four seconds' worth may come at once. 0: no limit. */
  readonly requestsPerSecond: number
  /** Milliseconds that never go back. */
  readonly now: () => number
}

/** How much each may ask. All in memory, a few additions for each request. */
export class RateLimits {
  readonly #keys: Buckets
  readonly #addresses: Buckets

  constructor({ requestsPerSecond, now }: RateLimitOptions) {
    const of = (perSecond: number, burst: number) => new Buckets({ perSecond, burst, now })
    this.#keys = of(requestsPerSecond, requestsPerSecond * BURST_SECONDS)
    this.#addresses = of(SERVER_LIMITS.refusalsPerSecond, SERVER_LIMITS.refusalsBurst)
  }

  /** A request of a key. @throws SandlotError `rate_limited` with `details.retryAfterMs` */
  take(key: string): void {
    const waitMs = this.#keys.take(key)
    if (waitMs > 0) throw tooMany('this key asks more often than the daemon allows', waitMs)
  }

  /**
   * A request from an address whose key or token was refused. Others from there are not held up.
   * @throws SandlotError `rate_limited`, in place of the refusal
   */
  refused(address: string): void {
    const waitMs = this.#addresses.take(address)
    if (waitMs > 0) throw tooMany('too many requests from this address had no good key', waitMs)
  }
}

/** Whose requests count together: of a key, but of what the daemon itself gave away for each sandbox by itself. */
export function rateNameOf({ key, sandbox }: Caller): string {
  return key === DAEMON_KEY && sandbox ? sandbox.id : key
}

const BURST_SECONDS = 4

interface Bucket {
  tokens: number
  atMs: number
}

/** A token bucket for each name. Those that are full again are as if they never were: the least lately used go first. */
class Buckets {
  readonly #perMs: number
  readonly #burst: number
  readonly #now: () => number
  readonly #byName = new Map<string, Bucket>()

  constructor(options: { perSecond: number; burst: number; now: () => number }) {
    this.#perMs = options.perSecond / 1_000
    this.#burst = options.burst
    this.#now = options.now
  }

  /** 0, or how long to wait. Milliseconds. */
  take(name: string): number {
    if (this.#perMs === 0) return 0
    const nowMs = this.#now()
    const bucket = this.#byName.get(name) ?? this.#add(name, nowMs)
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (nowMs - bucket.atMs) * this.#perMs)
    bucket.atMs = nowMs
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / this.#perMs)
    bucket.tokens -= 1
    return 0
  }

  #add(name: string, nowMs: number): Bucket {
    const bucket = { tokens: this.#burst, atMs: nowMs }
    this.#byName.set(name, bucket)
    if (this.#byName.size > SERVER_LIMITS.rateNames) {
      for (const oldest of this.#byName.keys()) {
        this.#byName.delete(oldest)
        break
      }
    }
    return bucket
  }
}

function tooMany(message: string, retryAfterMs: number): SandlotError {
  return new SandlotError('rate_limited', message, { details: { retryAfterMs } })
}
