import { ReceiveCredit } from './credit.ts'
import { MalformedFrame } from './frame.ts'
import { Inbox } from './inbox.ts'
import { CHANNELS } from './mux-stream.ts'

interface Inlet {
  readonly channel: number
  readonly credit: ReceiveCredit
  /** Its own until a reader of several channels joins them. */
  inbox: Inbox
  /** There is one reader a channel. */
  claimed: boolean
  receivedBytes: number
  ended: boolean
}

/** The receiving half of a stream: per channel what may come, what came, and who reads it. */
export class Inlets {
  readonly #inlets: (Inlet | undefined)[] = [undefined, undefined, undefined, undefined]
  readonly #onGrant: (channel: number, bytes: number) => void
  #discards = false
  #over: { failure: { reason: unknown } | undefined } | undefined

  constructor(onGrant: (channel: number, bytes: number) => void) {
    this.#onGrant = onGrant
  }

  /** Throws `MalformedFrame` for data that the peer had no right to send. */
  receive(channel: number, payload: Uint8Array): void {
    const inlet = this.#received(channel)
    if (inlet.ended) throw new MalformedFrame('credit', 'data after the end of its channel')
    if (!inlet.credit.receive(payload.length)) {
      throw new MalformedFrame('credit', 'data beyond the credit of its channel')
    }
    inlet.receivedBytes += payload.length
    inlet.inbox.push(channel, payload)
  }

  end(channel: number): void {
    const inlet = this.#received(channel)
    inlet.ended = true
    this.#finishEnded(inlet.inbox)
  }

  receivedBytes(channel: number): number {
    return this.#inlets[channel]?.receivedBytes ?? 0
  }

  /** What a reader of these channels takes from; throws `TypeError` when one has a reader already. */
  claim(channels: readonly number[], window = 0): Inbox {
    const inlets = channels.map((channel) => this.#inlet(channel))
    if (inlets.some((inlet) => inlet.claimed)) throw new TypeError('the channel has a reader')
    const inbox = inlets.length === 1 && inlets[0] ? inlets[0].inbox : this.#join(inlets)
    for (const inlet of inlets) {
      inlet.claimed = true
      this.#grant(inlet, inlet.credit.widen(window))
    }
    return inbox
  }

  /** Throws away what nobody has read, and what still comes. */
  discard(): void {
    this.#discards = true
    for (const inlet of this.#inlets) inlet?.inbox.discard()
  }

  /** Readers end, or throw, behind what has come. The first call wins. */
  finish(failure: { reason: unknown } | undefined): void {
    this.#over ??= { failure }
    for (const inlet of this.#inlets) inlet?.inbox.finish(failure)
  }

  #received(channel: number): Inlet {
    if (channel >= CHANNELS) throw new MalformedFrame('channel', `channel ${channel}`)
    return this.#inlet(channel)
  }

  #inlet(channel: number): Inlet {
    const known = this.#inlets[channel]
    if (known) return known
    const inlet: Inlet = {
      channel,
      credit: new ReceiveCredit(),
      inbox: this.#newInbox(),
      claimed: false,
      receivedBytes: 0,
      ended: false,
    }
    this.#inlets[channel] = inlet
    return inlet
  }

  #newInbox(): Inbox {
    const inbox = new Inbox((channel, bytes) => {
      const inlet = this.#inlets[channel]
      if (inlet) this.#grant(inlet, inlet.credit.consume(bytes))
    })
    if (this.#discards) inbox.discard()
    if (this.#over) inbox.finish(this.#over.failure)
    return inbox
  }

  #join(inlets: readonly Inlet[]): Inbox {
    const inbox = this.#newInbox()
    for (const inlet of inlets) {
      inbox.adopt(inlet.inbox)
      inlet.inbox = inbox
    }
    this.#finishEnded(inbox)
    return inbox
  }

  #finishEnded(inbox: Inbox): void {
    const open = this.#inlets.some((inlet) => inlet?.inbox === inbox && !inlet.ended)
    if (!open) inbox.finish()
  }

  #grant(inlet: Inlet, bytes: number): void {
    if (bytes > 0 && !inlet.ended) this.#onGrant(inlet.channel, bytes)
  }
}
