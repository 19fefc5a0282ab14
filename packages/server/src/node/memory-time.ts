import { SERVER_LIMITS } from '../limits.ts'

/** What so much memory may take on its way to disk or back, on top of what is waited for in any case. */
export function memoryTransferMs(memoryBytes: number): number {
  return Math.ceil(memoryBytes / SERVER_LIMITS.memoryBytesPerMs)
}
