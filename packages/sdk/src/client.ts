import { SandlotError } from '@sandlot/protocol'
import { type Endpoint, findLocalEndpoint, givenApiKey, givenUrl } from './config.ts'
import { Connection } from './connection/connection.ts'
import { Images } from './image/images.ts'
import { joinOrStart } from './local/local.ts'
import { Rollouts } from './rollout/rollouts.ts'
import { Sandboxes } from './sandbox/sandboxes.ts'

export interface SandlotOptions {
  /** Address of the daemon. Default: `SANDLOT_URL`, else the daemon that runs on this machine. */
  readonly url?: string
  /** Default: `SANDLOT_API_KEY`, else the key of this machine's daemon. */
  readonly apiKey?: string
}

/**
 * A client of one daemon. It opens its connection when first used. `await using client = new Sandlot()` closes it.
 * Errors are `SandlotError`s: decide by `fault` and `retry`, show `message` and `hint`.
 */
export class Sandlot implements AsyncDisposable {
  readonly sandboxes: Sandboxes
  readonly images: Images
  readonly rollouts: Rollouts
  readonly #connection: Connection
  readonly #endpoint: () => Promise<Endpoint>
  readonly #closing = new AbortController()
  #stop: (() => Promise<void>) | undefined

  constructor(options: SandlotOptions = {}) {
    this.#endpoint = () => endpointOf(options)
    this.#connection = new Connection(this.#endpoint)
    const context = { connection: this.#connection, endpoint: this.#endpoint }
    this.sandboxes = new Sandboxes(context)
    this.images = new Images(context)
    this.rollouts = new Rollouts(context, this.#closing.signal)
  }

  /**
   * A client of the daemon that runs on this machine; starts one for this process alone when there is none, so that a script
   * needs no second terminal. Closing the client drains the daemon that it started.
   */
  static async local(): Promise<Sandlot> {
    const { endpoint, stop } = await joinOrStart()
    const client = new Sandlot(endpoint)
    client.#stop = stop
    return client
  }

  /** Where the daemon answers, and the key in use. */
  async endpoint(): Promise<Endpoint> {
    return await this.#endpoint()
  }

  /** Ends the client's workers and connection. Sandboxes and runs live on in the daemon. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the client was closed'))
    this.#connection.close()
    const stop = this.#stop
    this.#stop = undefined
    await stop?.()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** A local daemon is looked up again each time: after a restart it may listen elsewhere. */
async function endpointOf(options: SandlotOptions): Promise<Endpoint> {
  const url = options.url ?? givenUrl
  const apiKey = options.apiKey ?? givenApiKey
  if (url && apiKey) return { url: url.replace(/\/+$/, ''), apiKey }
  const local = await findLocalEndpoint()
  if (!local && !url) {
    throw new SandlotError(
      'unreachable',
      'no daemon runs on this machine, and SANDLOT_URL is not set',
      {
        hint: 'Start one with `sandlot serve`, or use `await Sandlot.local()`, which starts one for your script.',
      },
    )
  }
  const key = apiKey ?? local?.apiKey
  if (!key) {
    throw new SandlotError('unauthorized', `there is no key for the daemon at ${url}`, {
      hint: 'Set SANDLOT_API_KEY.',
    })
  }
  return { url: (url ?? local?.url ?? '').replace(/\/+$/, ''), apiKey: key }
}
