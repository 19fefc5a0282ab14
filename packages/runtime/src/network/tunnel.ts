import type { Duplex } from 'node:stream'

/**
 * Joins two connections until both directions have ended or one of the two is gone. An end of one direction is passed on and leaves
 * the other as it is.
 */
export function joinConnections(one: Duplex, other: Duplex): void {
  one.pipe(other)
  other.pipe(one)
  endTogether(one, other)
}

/** When one is destroyed, so is the other. */
function endTogether(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.on('close', () => {
      // After its own end the other side may still have something to take.
      if (!from.readableEnded || !from.writableFinished) to.destroy()
    })
  }
}
