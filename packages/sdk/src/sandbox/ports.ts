import type { ConnectRequestInput, PortUrl, PortView } from '@sandlot/protocol'
import { SandlotError } from '@sandlot/protocol'
import type { MuxStream } from '@sandlot/protocol/frames'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { asSandlotError, isOutage } from '../connection/failure.ts'
import { joinSignals } from '../connection/signals.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { PortConnection } from './port-connection.ts'

export interface PortUrlOptions extends Waiting {
  /** How long it is good: `'2h'`, or milliseconds; at most 7 days. Default an hour. It ends with the sandbox and with the key. */
  readonly expires?: string | number
  /** Path and query that it leads to. Default `/`. */
  readonly path?: string
  /**
   * With a host name of its own, for a browser that is not to be led there by the other one. `unsupported` where the daemon has no names
   * for ports. Default false.
   */
  readonly named?: boolean
}

export interface PortWaitOptions extends Waiting {
  /** Default a minute, at most an hour; `timeout` when nothing listens by then. */
  readonly timeout?: string | number
}

export interface PortsTarget extends ClientContext {
  readonly sandbox: string
  readonly signal: AbortSignal | undefined
}

/** What programs in a sandbox listen on: `sandbox.ports`. */
export class Ports {
  readonly #target: PortsTarget

  constructor(target: PortsTarget) {
    this.#target = target
  }

  /** What listens now. */
  async list({ signal }: Waiting = {}): Promise<PortView[]> {
    using joined = joinSignals(signal, this.#target.signal)
    const parameters = { id: this.#target.sandbox }
    const request = { parameters, signal: joined.signal }
    return (await this.#target.http.json<{ items: PortView[] }>('listPorts', request)).items
  }

  /**
   * A URL that leads to a port without a key: for a browser, `curl`, or any other program. A browser that opens it is led to an origin of
   * the port's own. Whether something listens is seen when it is used.
   */
  async url(port: number, options: PortUrlOptions = {}): Promise<string> {
    refuseUnknown(options, ['expires', 'path', 'named', 'signal'])
    const { signal, named = false, ...terms } = options
    using joined = joinSignals(signal, this.#target.signal)
    const { url, originUrl } = await this.#target.http.json<PortUrl>('signPortUrl', {
      parameters: { id: this.#target.sandbox },
      json: { port, ...terms },
      signal: joined.signal,
    })
    // The daemon knows itself by the address on which it listens, which is not always the one by which it is reached.
    if (!named) return await this.#target.http.at(url.slice(new URL(url).origin.length))
    if (originUrl !== null) return originUrl
    throw new SandlotError('unsupported', 'this daemon has no host names for ports', {
      hint: 'Set SANDLOT_PORTS_URL for the daemon, or use the URL without `named`.',
    })
  }

  /** Resolves when something listens on a port, also if it does already. A daemon that is away for a moment is waited for. */
  async wait(port: number, options: PortWaitOptions = {}): Promise<void> {
    refuseUnknown(options, ['timeout', 'signal'])
    const { signal, ...terms } = options
    using joined = joinSignals(signal, this.#target.signal)
    const request = { op: 'port.wait', sandbox: this.#target.sandbox, port, ...terms } as const
    await this.#again(joined.signal, async () => {
      const stream = await this.#target.connection.open(request, joined.signal)
      await stream.done
    })
  }

  /**
   * A connection of any protocol, as a TCP socket would be. `port_refused` where nothing listens, which tells what does. `signal` ends it
   * at any time.
   */
  async connect(port: number, { signal }: Waiting = {}): Promise<PortConnection> {
    const joined = joinSignals(signal, this.#target.signal)
    const release = () => joined[Symbol.dispose]()
    const request = { op: 'port.open', sandbox: this.#target.sandbox, port } as const
    try {
      const stream = await this.#again(joined.signal, () => this.#open(request, joined.signal))
      const connection = new PortConnection(stream, port)
      return connection.once('close', release)
    } catch (error) {
      release()
      throw error
    }
  }

  async #open(request: ConnectRequestInput, signal: AbortSignal): Promise<MuxStream> {
    const stream = await this.#target.connection.open(request, signal)
    const connected = new Promise<void>((resolve) => {
      stream.onEvent = () => resolve()
    })
    await Promise.race([connected, stream.done])
    return stream
  }

  async #again<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const outage = this.#target.connection.outage()
    for (;;) {
      try {
        return await work()
      } catch (thrown) {
        const error = asSandlotError(thrown)
        if (signal.aborted || !isOutage(error)) throw error
        await outage.wait(error, signal)
      }
    }
  }
}
