import { stat } from 'node:fs/promises'
import { type LentGpus, lendGpus } from '../gpu/lend.ts'
import type { GpuSettings } from '../gpu/machine-gpus.ts'
import type { WorldSpec } from '../guest/guest.ts'

/** Where in the agent's root it is mounted; worlds show it at the path behind this. */
const GIVEN = '/given'
const DEVICES = '/dev/'

/** A node of the machine with its numbers, as the runtime wants them. */
interface Numbered {
  readonly path: string
  readonly major: number
  readonly minor: number
}

export interface LentNodes extends LentGpus {
  readonly numbered: readonly Numbered[]
}

/** Fails with `unsupported` where the machine has it no more. */
export async function lendNodes(
  settings: GpuSettings,
  names: readonly string[],
): Promise<LentNodes> {
  const lent = await lendGpus(settings, names)
  const numbered = await Promise.all(
    lent.nodes.map(async ({ path, hostPath }) => {
      const { rdev } = await stat(hostPath)
      return { path, ...numbersOf(rdev) }
    }),
  )
  return { ...lent, numbered }
}

/** For the specification: nodes of the agent's `/dev`. With `/dev/nvidiactl` among them the runtime brings its own part of the driver. */
export function lentDevices({ numbered }: LentNodes): readonly object[] {
  return numbered.map((each) => ({ ...each, type: 'c', fileMode: 0o666, uid: 0, gid: 0 }))
}

/** For the specification: a file system in memory with a mount point for each, since the agent's root can't be written. */
export function lentMounts(lent: LentGpus | undefined): readonly object[] {
  if (!lent) return []
  const options = ['ro', 'nosuid', 'nodev', 'rbind']
  return [
    { destination: GIVEN, type: 'tmpfs', source: 'tmpfs', options: ['mode=755', 'size=4m'] },
    ...lent.mounts.map(({ path, hostPath }) => ({
      ...{ destination: GIVEN + path, type: 'bind', source: hostPath, options },
    })),
  ]
}

/** For each world. */
export function shownOf({ nodes, mounts }: LentGpus): Pick<WorldSpec, 'devices' | 'given'> {
  return {
    devices: nodes.map(({ path }) => path.slice(DEVICES.length)),
    given: mounts.map(({ path }) => path),
  }
}

/** As Linux packs them. */
function numbersOf(device: number): { readonly major: number; readonly minor: number } {
  const bits = BigInt(device)
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & ~0xfffn)
  const minor = (bits & 0xffn) | ((bits >> 12n) & ~0xffn & 0xffffffffn)
  return { major: Number(major), minor: Number(minor) }
}
