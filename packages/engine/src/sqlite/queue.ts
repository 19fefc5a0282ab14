import { checkBytes, checkDedupKey, checkInteger, checkName, checkPrefix } from '../argument.ts'
import type { Clock } from '../clock.ts'
import {
  DELAY_MS_MAX,
  LEASE_MESSAGES_MAX,
  LEASE_MS_MAX,
  MESSAGE_BYTES_MAX,
  PAGE_ITEMS_DEFAULT,
  PAGE_ITEMS_MAX,
} from '../limits.ts'
import type {
  Lease,
  LeaseOptions,
  LeaseRef,
  ListMessagesOptions,
  MessageListing,
  NackOptions,
  PutMessageOptions,
  Queue,
  QueueCallOptions,
  QueueDepth,
  QueuePut,
} from '../queue.ts'
import type { Journal } from './journal.ts'
import { LeaseLine } from './lease-line.ts'

const PRIORITY_MAX = 1_000_000_000
const NOTHING = new Uint8Array()

export class SqliteQueue implements Queue {
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #closing: AbortSignal
  /** Those who wait, by queue; a line that has nobody in it is removed. */
  readonly #lines = new Map<string, LeaseLine>()

  constructor(journal: Journal, clock: Clock, closing: AbortSignal) {
    this.#journal = journal
    this.#clock = clock
    this.#closing = closing
  }

  async put(queue: string, body: Uint8Array, options: PutMessageOptions = {}): Promise<QueuePut> {
    const { priority = 0, delayMs = 0, dedup, signal } = options
    checkName('queue', queue)
    checkBytes('the message', body, MESSAGE_BYTES_MAX)
    checkInteger('priority', priority, -PRIORITY_MAX, PRIORITY_MAX)
    checkInteger('delayMs', delayMs, 0, DELAY_MS_MAX)
    if (dedup !== undefined) checkDedupKey(dedup)
    const { result } = await this.#journal.submit(
      'queue.put',
      { queue, priority, delayMs, nowMs: this.#clock.now(), ...(dedup !== undefined && { dedup }) },
      {
        bytes: [body],
        signal,
        committed: ({ dueAtMs }) => this.#lines.get(queue)?.due(dueAtMs),
      },
    )
    return { id: result.id, duplicate: result.duplicate }
  }

  async lease(queue: string, options: LeaseOptions): Promise<Lease[]> {
    const { max, leaseMs, waitMs = 0, signal } = options
    checkName('queue', queue)
    checkInteger('max', max, 1, LEASE_MESSAGES_MAX)
    checkInteger('leaseMs', leaseMs, 1, LEASE_MS_MAX)
    checkInteger('waitMs', waitMs, 0, Number.MAX_SAFE_INTEGER)
    signal?.throwIfAborted()
    return this.#line(queue).join({ max, leaseMs }, waitMs, signal)
  }

  async extend(lease: LeaseRef, leaseMs: number, options: QueueCallOptions = {}): Promise<void> {
    checkInteger('leaseMs', leaseMs, 1, LEASE_MS_MAX)
    await this.#journal.submit(
      'queue.extend',
      { ...reference(lease), leaseMs, nowMs: this.#clock.now() },
      {
        signal: options.signal,
        committed: (dueAtMs) => this.#lines.get(lease.queue)?.due(dueAtMs),
      },
    )
  }

  async ack(lease: LeaseRef, options: QueueCallOptions = {}): Promise<void> {
    await this.#journal.submit('queue.ack', reference(lease), { signal: options.signal })
  }

  async nack(lease: LeaseRef, options: NackOptions = {}): Promise<void> {
    const { delayMs = 0, signal } = options
    checkInteger('delayMs', delayMs, 0, DELAY_MS_MAX)
    await this.#journal.submit(
      'queue.nack',
      { ...reference(lease), delayMs, nowMs: this.#clock.now() },
      { signal, committed: (dueAtMs) => this.#lines.get(lease.queue)?.due(dueAtMs) },
    )
  }

  async delete(queue: string, { signal }: QueueCallOptions = {}): Promise<void> {
    checkName('queue', queue)
    for (;;) {
      const { result: more } = await this.#journal.submit('queue.delete', { queue }, { signal })
      if (!more) return
    }
  }

  async depth(queue: string, { signal }: QueueCallOptions = {}): Promise<QueueDepth> {
    checkName('queue', queue)
    const request = { queue, nowMs: this.#clock.now() }
    return (await this.#journal.submit('queue.depth', request, { signal })).result
  }

  async list(prefix: string, options: ListMessagesOptions = {}): Promise<MessageListing> {
    const { after, limit = PAGE_ITEMS_DEFAULT, signal } = options
    checkPrefix(prefix)
    checkInteger('limit', limit, 1, PAGE_ITEMS_MAX)
    const request = { prefix, limit, ...(after !== undefined && { after }) }
    const { result, bytes } = await this.#journal.submit('queue.list', request, { signal })
    const messages = result.messages.map((each, at) => ({ ...each, body: bytes[at] ?? NOTHING }))
    const last = messages.at(-1)
    return { messages, ...(result.more && last && { next: last.id }) }
  }

  async #giveBackUntaken(lease: LeaseRef): Promise<void> {
    await this.#journal.submit(
      'queue.nack',
      { ...reference(lease), delayMs: 0, nowMs: this.#clock.now(), untaken: true },
      { committed: (dueAtMs) => this.#lines.get(lease.queue)?.due(dueAtMs) },
    )
  }

  #line(queue: string): LeaseLine {
    const present = this.#lines.get(queue)
    if (present) return present
    const line = new LeaseLine({
      queue,
      journal: this.#journal,
      clock: this.#clock,
      closing: this.#closing,
      giveBack: (lease) => this.#giveBackUntaken(lease),
      emptied: () => this.#lines.delete(queue),
    })
    this.#lines.set(queue, line)
    return line
  }
}

function reference({ queue, id, token }: LeaseRef): { queue: string; id: string; token: number } {
  checkName('queue', queue)
  checkInteger('token', token, 0, Number.MAX_SAFE_INTEGER)
  return { queue, id, token }
}
