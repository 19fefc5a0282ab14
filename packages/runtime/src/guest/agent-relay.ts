import type { Duplex } from 'node:stream'
import type { MuxStream } from '@sandlot/protocol/frames'
import type { GuestWait } from './guest.ts'
import type { BrokenOff, GuestRelay } from './guest-relay.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { RelayedConnection } from './relayed-connection.ts'

export class AgentRelay implements GuestRelay {
  onConnection: ((connection: Duplex) => void) | undefined
  readonly #link: GuestLink

  constructor(link: GuestLink) {
    this.#link = link
    link.onRelayed = (stream) => this.#connected(stream)
  }

  async listen(port: number, wait: GuestWait = {}): Promise<BrokenOff> {
    const request = { port }
    const answer = await this.#link.request('relay.listen', request, messages.listening, wait)
    // An agent of an earlier version does not count.
    const { broken: connections = 0, unanswered = 0 } = answer
    return { connections, unanswered }
  }

  #connected(stream: MuxStream): void {
    if (this.onConnection) this.onConnection(new RelayedConnection(stream, 'acceptor'))
    else stream.fail({ code: 'unsupported', message: 'nobody takes connections' })
  }
}
