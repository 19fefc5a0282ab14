import { type Duplex, duplexPair } from 'node:stream'

/** Two ends of one connection: what is destroyed at one end is gone at the other, as with a socket that is reset. */
export function connectionPair(): [Duplex, Duplex] {
  const [one, other] = duplexPair()
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => {})
    // What was written is the writer's again, as with a socket.
    const write = from._write.bind(from)
    from._write = (chunk, encoding, done) => write(Buffer.from(chunk), encoding, done)
    // Before the other end hears of an end that it isn't.
    const destroy = from._destroy.bind(from)
    from._destroy = (error, done) => {
      if (!from.readableEnded || !from.writableFinished) to.destroy()
      destroy(error, done)
    }
  }
  return [one, other]
}
