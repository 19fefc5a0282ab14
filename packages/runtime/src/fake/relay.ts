import type { Duplex } from 'node:stream'
import type { BrokenOff, GuestRelay } from '../guest/guest-relay.ts'
import { connectionPair } from './connection-pair.ts'

/** A relay without frames: `connect` is what a process inside would do. */
export class FakeRelay implements GuestRelay {
  onConnection: ((connection: Duplex) => void) | undefined
  port: number | undefined
  /** For tests: what earlier daemons had open when they went. */
  brokenOff: BrokenOff = { connections: 0, unanswered: 0 }

  async listen(port: number): Promise<BrokenOff> {
    this.port = port
    return this.brokenOff
  }

  /** For tests: a process inside connects to the port. */
  connect(): Duplex {
    if (this.port === undefined || !this.onConnection) throw new Error('nothing listens')
    const [inside, outside] = connectionPair()
    this.onConnection(outside)
    return inside
  }
}
