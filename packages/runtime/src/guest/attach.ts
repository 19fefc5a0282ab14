import { randomBytes } from 'node:crypto'
import { encodeSync, FRAME_LIMITS } from '@sandlot/protocol/frames'
import type { VetEnd } from './agent-exec.ts'
import { AgentGuest } from './agent-guest.ts'
import type { Guest } from './guest.ts'
import { GuestLost } from './guest-error.ts'
import type { HeartbeatTimes } from './heartbeat.ts'
import { GUEST_LIMITS } from './limits.ts'
import { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { openPipes, type PipePaths } from './pipes.ts'
import { revisionOf } from './revision.ts'

export interface AttachOptions extends PipePaths {
  /**
   * A daemon was attached to this guest before, and may have died in the middle of a frame. False for a sandbox that is
   * being started: its agent may come later.
   */
  readonly resuming: boolean
  /**
   * Its agent was saved in the middle of whatever, and is being restored: it comes later too, as one that is started. It may be silent
   * until it is thawed.
   */
  readonly restored?: boolean
  readonly signal?: AbortSignal
  /** Until the agent's hello. Default `GUEST_LIMITS.handshakeMs`. */
  readonly timeoutMs?: number
  readonly heartbeat?: HeartbeatTimes
  /** Asked about each end of a command before it is told: throws where more has ended than the command. */
  readonly vetEnd?: VetEnd
}

/**
 * Opens the two pipes of a sandbox, finds the boundary of frames by a handshake with a fresh nonce, and reads the agent's
 * hello. The agent drops what an earlier daemon had under way; commands live on.
 *
 * Rejects with `GuestLost` (`exited`, `no_handshake`, `protocol`, `io`) or the signal's reason; the pipes are closed then.
 */
export async function attachGuest(options: AttachOptions): Promise<Guest> {
  const { signal, timeoutMs = GUEST_LIMITS.handshakeMs } = options
  signal?.throwIfAborted()
  const pipes = await openPipes(options, options.resuming)
  const nonce = new Uint8Array(randomBytes(FRAME_LIMITS.nonce))
  const link = new GuestLink(pipes, nonce, options.heartbeat ?? GUEST_LIMITS)
  const timer = setTimeout(() => {
    link.lose('no_handshake', `its agent did not answer within ${timeoutMs} ms`)
  }, timeoutMs)
  const abort = () => link.lose('detached', 'the attach was aborted')
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    const filler = options.resuming || options.restored ? [new Uint8Array(FRAME_LIMITS.frame)] : []
    const said = await link.greet([...filler, encodeSync('sync', nonce)])
    const hello = link.parse('its hello', said, messages.hello)
    link.agentRevision = revisionOf(hello.agent)
    if (!options.restored) link.watchSilence()
    return new AgentGuest(link, hello, options.vetEnd)
  } catch (error) {
    await link.close()
    if (signal?.aborted && !(error instanceof GuestLost && error.cause !== 'detached')) {
      throw signal.reason
    }
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
