import { type Duplex, duplexPair } from 'node:stream'

/** Two ends of one connection: what is destroyed at one end is gone at the other, as with a socket that is reset. */
export function connectionPair(): [Duplex, Duplex] {
  const [one, other] = duplexPair()
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => {})
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy()
    })
  }
  return [one, other]
}
