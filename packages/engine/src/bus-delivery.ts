import type { Clock } from './clock.ts'

/** What the test mode does to messages; the same seed and the same calls give the same faults. */
export interface BusFaults {
  readonly seed: number
  /** Each delivery is late by 0 to this much, so that messages overtake one another. Default 20. */
  readonly delayMsMax?: number
  /** Share of deliveries of requests and replies that happen twice, 0 to 1. Default 0.2. */
  readonly doubleShare?: number
}

/** Brings a payload to `receive`: never within the call, so that sender and receiver can't depend on one another's stack. */
export type BusDelivery = (payload: Uint8Array, receive: (payload: Uint8Array) => void) => void

export function createDelivery(clock: Clock, faults?: BusFaults): BusDelivery {
  if (faults === undefined) return (payload, receive) => queueMicrotask(() => receive(payload))
  const { seed, delayMsMax = 20, doubleShare = 0.2 } = faults
  const random = mulberry32(seed)
  return (payload, receive) => {
    const times = random() < doubleShare ? 2 : 1
    for (let time = 0; time < times; time++) {
      // The sender's later changes must not show, nor one receiver's to the other.
      const copy = new Uint8Array(payload)
      clock.after(Math.floor(random() * (delayMsMax + 1)), () => receive(copy))
    }
  }
}

/** A small generator of numbers from 0 up to 1 that a 32-bit seed determines. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
