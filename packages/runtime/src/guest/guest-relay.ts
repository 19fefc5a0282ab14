import type { Duplex } from 'node:stream'
import type { GuestWait } from './guest.ts'

/** Connections that broke off with earlier daemons, since one was answered. */
export interface BrokenOff {
  readonly connections: number
  /** Of them those that had asked, and had heard nothing. */
  readonly unanswered: number
}

/**
 * A port of the sandbox's loopback whose connections come to this daemon. The agent keeps the port until the sandbox ends, also while
 * no daemon is there; connections then wait.
 */
export interface GuestRelay {
  /**
   * Listens on 127.0.0.1 and ::1. Called before a world opens, nothing inside can have the port; called again by a later daemon, the
   * connections come to it, and what became of those of the earlier one is told. `exists` where it listens on another port.
   */
  listen(port: number, wait?: GuestWait): Promise<BrokenOff>
  /** A process inside has connected. Without one, connections are reset. */
  onConnection: ((connection: Duplex) => void) | undefined
}
