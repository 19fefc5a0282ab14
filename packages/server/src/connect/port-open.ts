import type { Duplex } from 'node:stream'
import { SandlotError } from '@sandlot/protocol'
import { type MuxStream, releasePayload } from '@sandlot/protocol/frames'
import { GuestLost } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import { idleTimer } from '../ports/idle-timer.ts'
import type { Operation } from './session.ts'
import { INPUT, OUTPUT } from './transfer.ts'

/** A connection to a port, of any protocol, until both directions have ended. */
export const portOpen: Operation<'port.open'> = async (stream, request, session) => {
  const { node, caller, ports, serving } = session
  const { sandbox, port } = request
  serving.checkTakes({ admitted: node.isOfAttempt(sandbox) })
  const { signal } = stream
  using lent = await node.sandboxes.lend(sandbox, { project: caller.project, signal })
  const connection = await ports.connect({ lent, port }, { signal })
  const idle = new SandlotError('timeout', 'nothing moved on the connection for an hour')
  using timer = idleTimer(SERVER_LIMITS.portStreamIdleMs, () => connection.destroy(idle))
  try {
    stream.event({ kind: 'connected' })
    await Promise.race([failureOf(connection), join(stream, connection, timer.touch)])
    return {}
  } catch (error) {
    if (signal.aborted || error instanceof SandlotError) throw error
    // A sandbox that ended, or stands still on disk, is told so; else it was the program inside.
    if (error instanceof GuestLost) throw await lent.explain(error)
    const message = `the connection to port ${port} was reset`
    throw new SandlotError('port_failed', message, { cause: error })
  } finally {
    connection.destroy()
  }
}

/** Rejects when the connection is gone before both its directions have ended. */
function failureOf(connection: Duplex): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    connection.once('error', reject)
    connection.once('close', () => {
      const whole = connection.readableEnded && connection.writableFinished
      if (!whole) reject(new Error('the connection was closed'))
    })
  })
  failed.catch(() => {})
  return failed
}

/** Both directions, each as fast as its other end takes it. */
async function join(stream: MuxStream, connection: Duplex, touch: () => void): Promise<void> {
  const outward = async () => {
    for await (const chunk of connection.iterator({ destroyOnReturn: false })) {
      touch()
      await stream.send(OUTPUT, chunk)
      releasePayload(chunk)
    }
    stream.end(OUTPUT)
  }
  const inward = async () => {
    for await (const chunk of stream.read(INPUT)) {
      touch()
      await written(connection, chunk)
      releasePayload(chunk)
    }
    connection.end()
  }
  await Promise.all([outward(), inward()])
}

function written(connection: Duplex, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.write(chunk, (error) => (error ? reject(error) : resolve()))
  })
}
