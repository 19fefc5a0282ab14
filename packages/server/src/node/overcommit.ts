import { availableParallelism } from 'node:os'
import type { Room } from './room.ts'

/** What all sandboxes together may take, in machines: 1 is as much as there is, 3 three times that. */
export function overcommit({ used, memory }: Pick<Room, 'used' | 'memory'>): {
  readonly cpu: number
  readonly memory: number
} {
  const rounded = (share: number) => Math.round(share * 100) / 100
  return {
    cpu: rounded(used.limits.cpus / availableParallelism()),
    memory: rounded(used.limits.memoryBytes / memory.totalBytes),
  }
}
