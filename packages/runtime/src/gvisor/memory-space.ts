import { freemem, totalmem } from 'node:os'
import type { Cgroups } from '../cgroup/cgroups.ts'
import type { MemorySpace } from '../machine-space.ts'

/** By the kernel's own estimate (`MemAvailable`), and by limits of the groups in which all sandboxes are. */
export async function memorySpace(cgroups: Pick<Cgroups, 'memoryAbove'>): Promise<MemorySpace> {
  const { limitBytes, availableBytes } = await cgroups.memoryAbove()
  return {
    totalBytes: Math.min(totalmem(), limitBytes),
    availableBytes: Math.min(freemem(), availableBytes),
  }
}
