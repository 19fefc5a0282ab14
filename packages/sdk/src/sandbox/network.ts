import type {
  NetworkInForce,
  NetworkLogEntry,
  NetworkLogPage,
  NetworkPolicyInput,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import { joinSignals } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'

export interface NetworkLogOptions extends Waiting {
  /** Entries of this `seq` and later ones: a reader that stops goes on from its last `seq` + 1. Default: all that are kept. */
  readonly from?: number
  /** Later entries too, as they come, until the sandbox ends. */
  readonly follow?: boolean
}

/** How long one question for later entries waits. */
const WAIT_MS = 20_000
const PAGE_ITEMS = 500

/** `sandbox.network`: what it may reach while it runs, and what it asked for. */
export class SandboxNetwork {
  readonly #context: ClientContext
  readonly #id: string
  readonly #signal: AbortSignal | undefined

  constructor(context: ClientContext, id: string, signal: AbortSignal | undefined) {
    this.#context = context
    this.#id = id
    this.#signal = signal
  }

  /** What decides at this moment, as the daemon's relay itself has it. Throws `sandbox_paused`, `sandbox_gone`. */
  async inForce({ signal }: Waiting = {}): Promise<NetworkInForce> {
    using joined = joinSignals(signal, this.#signal)
    const request = { parameters: { id: this.#id }, signal: joined.signal }
    return await this.#context.http.json<NetworkInForce>('getNetwork', request)
  }

  /**
   * From now on this policy decides; resolves with what is in force then, when the connections that it refuses are closed. Commands that
   * run go on, with the variables that they began with. Throws `network_unchanged` where it can't be enforced, or the phases of a run
   * decide; then what was in force still is.
   */
  async set(policy: NetworkPolicyInput, { signal }: Waiting = {}): Promise<NetworkInForce> {
    using joined = joinSignals(signal, this.#signal)
    const parameters = { id: this.#id }
    const request = { parameters, json: { policy }, signal: joined.signal }
    return await this.#context.http.json<NetworkInForce>('setNetwork', request)
  }

  /** Each connection and refusal, oldest first; of a sandbox that has ended too, for about an hour. */
  async *log(options: NetworkLogOptions = {}): AsyncGenerator<NetworkLogEntry> {
    refuseUnknown(options, ['from', 'follow', 'signal'])
    const { follow = false, signal } = options
    using joined = joinSignals(signal, this.#signal)
    const parameters = { id: this.#id }
    const wait = follow ? { wait: WAIT_MS } : {}
    for (let { from = 1 } = options; ; ) {
      const query = { from, limit: PAGE_ITEMS, ...wait }
      const request = { parameters, query, signal: joined.signal }
      const page = await this.#page(request, from)
      yield* page.items
      from = page.next
      if (page.over || (!follow && page.items.length === 0)) return
    }
  }

  /** A sandbox that is forgotten while it is followed has ended. */
  async #page(request: object, from: number): Promise<NetworkLogPage> {
    try {
      return await this.#context.http.json<NetworkLogPage>('readNetworkLog', request)
    } catch (error) {
      if (from > 1 && isCode(error, 'sandbox_unknown')) return { items: [], next: from, over: true }
      throw error
    }
  }
}
