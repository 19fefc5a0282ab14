import { renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { SandboxSpec } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import type { SandboxPaths } from './paths.ts'
import { sandboxLimits } from './stored-limits.ts'

/**
 * What a later daemon must know of a sandbox, in a file of its own. It is written before the launch and once more before
 * the world is opened. Whether anything lives is not in it: membership of the cgroup alone says so.
 */
export interface SandboxState {
  readonly hostId: string
  /** Wall clock, milliseconds. */
  readonly startedAtMs: number
  /** For a person who looks; 0 before the launch is over. */
  readonly sentryPid: number
  /** Digests of the layers that are mounted, in the order of their mount points. */
  readonly mounted: readonly string[]
  /** Its memory is being written: it may answer only when that is over. */
  readonly saving?: boolean
  /** Absent while blank. */
  readonly owner?: { readonly spec: SandboxSpec; readonly checkedOutAtMs: number }
}

const size = z.number().int().nonnegative()
const spec = z.strictObject({
  id: z.string(),
  layers: z.array(z.object({ digest: z.string(), path: z.string() })),
  limits: sandboxLimits,
  hostname: z.string(),
  detachedMs: size,
  lifetimeMs: size.exactOptional(),
  checkpointable: z.boolean().exactOptional(),
  relayPort: size.exactOptional(),
  network: z.literal('open').exactOptional(),
  gpus: z.array(z.string()).exactOptional(),
  cpuShare: z.number().positive().exactOptional(),
})
const schema = z.strictObject({
  hostId: z.string(),
  startedAtMs: size,
  sentryPid: size,
  mounted: z.array(z.string()).exactOptional(),
  saving: z.boolean().exactOptional(),
  owner: z.strictObject({ spec, checkedOutAtMs: size }).exactOptional(),
})

/**
 * Whole or not at all. In place, without the thread pool: the run directory is memory, and a checkout must not wait behind somebody's
 * disk.
 */
export function saveState(paths: SandboxPaths, state: SandboxState): void {
  const next = `${paths.state}.next`
  writeFileSync(next, JSON.stringify(state), { mode: 0o600 })
  renameSync(next, paths.state)
}

/** Undefined where there is none, or none that this version reads: then nobody can own what is there. */
export async function loadState(paths: SandboxPaths): Promise<SandboxState | undefined> {
  try {
    const text = await readFile(paths.state, 'utf8')
    if (text.length > RUNTIME_LIMITS.stateBytesMax) return undefined
    const { mounted, ...state } = schema.parse(JSON.parse(text))
    const layers = state.owner?.spec.layers ?? []
    return { ...state, mounted: mounted ?? layers.map(({ digest }) => digest) }
  } catch {
    return undefined
  }
}
