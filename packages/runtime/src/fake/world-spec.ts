import type { GradeWorldSpec, SandboxSpec } from '../driver.ts'
import type { WorldSpec } from '../guest/guest.ts'
import { sizesOf } from '../gvisor/sizing.ts'

/** `shows` tells a grader's world from the episode's. */
export function worldSpec(
  spec: SandboxSpec,
  world: string,
  shows?: GradeWorldSpec['shows'],
): WorldSpec {
  const sizes = sizesOf(spec.limits)
  return {
    world,
    layers: [],
    ...(shows === 'main' ? { below: 'main' } : {}),
    upperBytes: shows === undefined ? sizes.upperBytes : sizes.gradeUpperBytes,
    upperInodes: sizes.upperInodes,
    shmBytes: sizes.shmBytes,
    pidsMax: spec.limits.pidsMax,
    nofileMax: spec.limits.nofileMax,
    hostname: spec.hostname,
  }
}
