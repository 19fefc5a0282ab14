import { savedBytesMax } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'

/** What the memory of a sandbox of these limits may take on its way to disk or back, on top of what is waited for in any case. */
export function memoryTransferMs(limits: Parameters<typeof savedBytesMax>[0]): number {
  return Math.ceil(savedBytesMax(limits) / SERVER_LIMITS.memoryBytesPerMs)
}
