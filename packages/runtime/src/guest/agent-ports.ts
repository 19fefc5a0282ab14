import type { Duplex } from 'node:stream'
import type { GuestWait } from './guest.ts'
import { GuestTimeout } from './guest-error.ts'
import type { GuestPort, GuestPorts } from './guest-ports.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { RelayedConnection } from './relayed-connection.ts'

export class AgentPorts implements GuestPorts {
  readonly #link: GuestLink

  constructor(link: GuestLink) {
    this.#link = link
  }

  async connect(port: number, wait: GuestWait = {}): Promise<Duplex> {
    const { signal, timeoutMs = GUEST_LIMITS.connectMs } = wait
    signal?.throwIfAborted()
    const stream = this.#link.open('port.connect', { port }, {})
    const { promise: connected, resolve } = Promise.withResolvers<void>()
    stream.onEvent = (event) => {
      this.#link.parse('an event of port.connect', event, messages.connected)
      resolve()
    }
    const late = () => stream.abort(new GuestTimeout('port.connect', timeoutMs))
    const timer = setTimeout(late, timeoutMs)
    const abort = () => stream.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([connected, stream.done])
      return new RelayedConnection(stream, 'opener', (error) => this.#link.failure(error))
    } catch (error) {
      throw this.#link.failure(error)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  async list(wait: GuestWait = {}): Promise<readonly GuestPort[]> {
    const { ports } = await this.#link.request('port.list', {}, messages.listeners, wait)
    return ports
  }

  async wait(port: number, wait: GuestWait = {}): Promise<void> {
    const stream = this.#link.open('port.wait', { port }, wait)
    await this.#link.answer('port.wait', stream, messages.nothing)
  }
}
