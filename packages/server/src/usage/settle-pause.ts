import type { OwnershipRecord } from '../node/ownership.ts'
import type { NodeParts } from '../node/sandboxes.ts'

/**
 * Meters the stretch that a pause has ended, and then says in the durable record that it is metered: done again after a kill between
 * the two, it is known by its key. What it sent and got is told at its end. A stretch that can't be recorded is tried again before the next, also by a later daemon.
 */
export async function settlePause(
  { meter, ownership }: Pick<NodeParts, 'meter' | 'ownership'>,
  record: OwnershipRecord,
  usedCpuMs = 0,
): Promise<OwnershipRecord> {
  const { meteredFromMs, pausedAtMs } = record
  if (meteredFromMs === undefined || pausedAtMs === undefined) return record
  try {
    await meter.over(record, pausedAtMs, { cpuMs: usedCpuMs, networkBytes: 0 })
    const settled = withoutStretch(record)
    await ownership.put(settled)
    return settled
  } catch {
    return record
  }
}

/** What was metered of it is recorded. */
export function withoutStretch({ meteredFromMs: _, ...record }: OwnershipRecord): OwnershipRecord {
  return record
}
