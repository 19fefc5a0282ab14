import type { Clock } from '@sandlot/engine'

/**
 * When something that lives on this machine can have begun, by what a record says of it: not before the machine did, and not later than now.
 * The machine's clock may have been set while no daemon was there.
 */
export function aliveSinceMs(recordedMs: number, clock: Clock): number {
  const earliestMs = clock.machineStartedMs?.() ?? Number.NEGATIVE_INFINITY
  return Math.min(clock.now(), Math.max(recordedMs, earliestMs))
}
