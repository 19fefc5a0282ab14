import type { Duplex } from 'node:stream'
import type { GuestWait } from './guest.ts'

/**
 * The way into a sandbox: what processes of its worlds listen on, on the one loopback that all worlds share.
 *
 * The relay's port is never reached or told of: `invalid`. So is what is no port (1 to 65,535).
 */
export interface GuestPorts {
  /**
   * A connection to 127.0.0.1, or else ::1, made by the agent. `refused` where nothing listens; `limit` when 256 are open or being made.
   * The deadline (default `GUEST_LIMITS.connectMs`) and the signal are those of the connect.
   *
   * It carries credit both ways. Ended in both directions it is over; destroyed before, it is reset inside. It is destroyed with an error
   * when the process resets it, or the guest is lost. No credit moves while the sandbox is frozen, and it goes on afterwards; in a copy it
   * is reset.
   */
  connect(port: number, wait?: GuestWait): Promise<Duplex>

  /** What listens now, each once, by port; at most 1,024. Nobody is connected to for it. */
  list(wait?: GuestWait): Promise<readonly GuestPort[]>

  /**
   * Resolves when something listens where `connect` would reach it, also if it does already. The agent looks by itself, 40 times a second.
   * There is no deadline without `timeoutMs`. `limit` when 64 wait.
   */
  wait(port: number, wait?: GuestWait): Promise<void>
}

/** One listener. */
export interface GuestPort {
  readonly port: number
  /** As text: `0.0.0.0`, `127.0.0.1`, `::`, `::1`, … */
  readonly address: string
}

/** Of the addresses that something listens on: whether a connection to the loopback comes to it. */
export function isReachedByLoopback(address: string): boolean {
  return ['0.0.0.0', '127.0.0.1', '::', '::1'].includes(address)
}
