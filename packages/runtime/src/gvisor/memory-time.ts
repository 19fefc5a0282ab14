import type { SandboxLimits } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** How long all memory of a sandbox may take on its way to disk or back. */
export function checkpointMs(limits: SandboxLimits): number {
  return RUNTIME_LIMITS.checkpointMs + transferMs(limits)
}

export function restoreMs(limits: SandboxLimits): number {
  return RUNTIME_LIMITS.restoreMs + transferMs(limits)
}

function transferMs({ memoryBytes }: SandboxLimits): number {
  return Math.ceil(memoryBytes / RUNTIME_LIMITS.memoryBytesPerMs)
}
