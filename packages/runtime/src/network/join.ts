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

/** When one is destroyed, so is the other, until the function is called. */
export function endTogether(one: Duplex, other: Duplex): () => void {
  const undo = [follow(one, other), follow(other, one)]
  return () => {
    for (const each of undo) each()
  }
}

function follow(from: Duplex, to: Duplex): () => void {
  const onError = () => void to.destroy()
  const onClose = () => {
    // After its own end the other side may still have something to take.
    if (!from.readableEnded || !from.writableFinished) to.destroy()
  }
  from.on('error', onError).on('close', onClose)
  return () => from.off('error', onError).off('close', onClose)
}
