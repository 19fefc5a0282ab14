import { formatSize, SandlotError } from '@sandlot/protocol'
import type { Need, Room } from './room.ts'

/** `invalid_request` where there never will be room, however long one waits. */
export function neverFits(
  need: Need,
  { size, disk }: Pick<Room, 'size' | 'disk'>,
): SandlotError | undefined {
  if (need.cpus > size.cpus) {
    return new SandlotError(
      'invalid_request',
      `resources.cpu: ${need.cpus} are asked for, the machine gives ${size.cpus} in all`,
    )
  }
  if (need.memoryBytes > size.memoryBytes) {
    return new SandlotError(
      'invalid_request',
      `resources.memory: ${formatSize(need.memoryBytes)} are asked for, the machine gives ${formatSize(size.memoryBytes)} in all`,
    )
  }
  if (need.diskBytes > disk.bytes) {
    return new SandlotError(
      'invalid_request',
      `resources.disk: ${formatSize(need.diskBytes)} are needed with what a grader may write, the machine's disk gives ${formatSize(disk.bytes)} in all`,
      { hint: 'Ask for a smaller disk, or free space under the data directory of the daemon.' },
    )
  }
  return undefined
}

/** Nobody is let in for this reason. */
export function closed(why: string): SandlotError {
  return new SandlotError('capacity', `no room for another sandbox: ${why}`, {
    hint: 'Free space on that disk; what is asked for then goes on by itself.',
  })
}

/** There is no room now. */
export function full(need: Need, { size, used, disk, memory }: Room): SandlotError {
  if (!memory.admits(need.memoryBytes)) {
    const asked = formatSize(need.memoryBytes)
    return new SandlotError(
      'capacity',
      `no room for another sandbox: ${asked} are asked for, ${memory.describe()}`,
      { hint: 'End what takes the memory, or wait; SANDLOT_MEMORY_FREE sets what is kept free.' },
    )
  }
  const taken = [
    `${used.sandboxes} of ${size.sandboxes} sandboxes`,
    `${used.cpus} of ${size.cpus} processors`,
    `${formatSize(used.memoryBytes)} of ${formatSize(size.memoryBytes)} of memory`,
  ]
  if (need.diskBytes > 0) {
    taken.push(`${formatSize(used.diskBytes)} of ${formatSize(disk.bytes)} of disk`)
  }
  const said = new Intl.ListFormat('en').format(taken)
  return new SandlotError('capacity', `no room for another sandbox: ${said} are taken`)
}
