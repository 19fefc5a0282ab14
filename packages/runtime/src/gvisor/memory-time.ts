import type { SandboxLimits } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { savedBytesMax } from './sizing.ts'

/** How long all memory of a sandbox, and its files on the disk, may take on its way to disk or back. */
export function checkpointMs(limits: SandboxLimits): number {
  return RUNTIME_LIMITS.checkpointMs + transferMs(limits)
}

export function restoreMs(limits: SandboxLimits): number {
  return RUNTIME_LIMITS.restoreMs + transferMs(limits)
}

function transferMs(limits: SandboxLimits): number {
  return Math.ceil(savedBytesMax(limits) / RUNTIME_LIMITS.memoryBytesPerMs)
}
