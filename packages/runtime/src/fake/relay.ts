import type { Duplex } from 'node:stream'
import type { GuestRelay } from '../guest/guest-relay.ts'
import { connectionPair } from './connection-pair.ts'

/** A relay without frames: `connect` is what a process inside would do. */
export class FakeRelay implements GuestRelay {
  onConnection: ((connection: Duplex) => void) | undefined
  port: number | undefined

  async listen(port: number): Promise<void> {
    this.port = port
  }

  /** For tests: a process inside connects to the port. */
  connect(): Duplex {
    if (this.port === undefined || !this.onConnection) throw new Error('nothing listens')
    const [inside, outside] = connectionPair()
    this.onConnection(outside)
    return inside
  }
}
