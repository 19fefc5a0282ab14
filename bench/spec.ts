import { newId } from '@sandlot/protocol'
import type { Image, SandboxSpec } from '@sandlot/runtime'

const MIB = 2 ** 20

/** The limits of every sandbox of the bench that is made below the API; they are those of the API's defaults. */
export const BENCH_LIMITS = {
  memoryBytes: 1_024 * MIB,
  cpus: 2,
  pidsMax: 256,
  diskBytes: 512 * MIB,
  nofileMax: 65_536,
} as const

/** A new sandbox of this image. */
export function benchSpec(image: Image): SandboxSpec {
  return {
    id: newId('sandbox'),
    layers: image.layers.map(({ digest, path }) => ({ digest, path })),
    limits: BENCH_LIMITS,
    hostname: 'bench',
    detachedMs: 60_000,
  }
}

/** The command whose result ends a start. */
export const TRUE_COMMAND = ['/usr/bin/true'] as const
