import { isDeepStrictEqual } from 'node:util'
import type { LeafLimits } from '../cgroup/cgroups.ts'
import {
  DriverError,
  type GradeWorldSpec,
  type Sandbox,
  type SandboxSpec,
  type WorldAhead,
} from '../driver.ts'
import { lendGpus } from '../gpu/lend.ts'
import type { Guest, WorldSpec } from '../guest/guest.ts'
import { GuestError, GuestLost, GuestTimeout } from '../guest/guest-error.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { layerMountPoint } from './bundle.ts'
import type { GvisorContext } from './context.ts'
import { configurationOf } from './identity.ts'
import type { Instance } from './instance.ts'
import { shownOf } from './lent.ts'
import { sizesOf } from './sizing.ts'

/** The limits of the cgroup of a sandbox that is not blank. */
export function leafLimits({ limits }: Pick<SandboxSpec, 'limits'>): LeafLimits {
  const { hostPidsFactor, hostPidsMin } = RUNTIME_LIMITS
  return {
    memoryBytes: sizesOf(limits).cgroupMemoryBytes,
    cpus: limits.cpus,
    pidsMax: Math.max(hostPidsMin, hostPidsFactor * limits.pidsMax),
  }
}

export function blankLimits(): LeafLimits {
  return { memoryBytes: RUNTIME_LIMITS.blankMemoryBytes, pidsMax: RUNTIME_LIMITS.hostPidsMin }
}

/** Opens the world of a sandbox that was launched with its layers and limits, and has no owner yet. A failure or an abort ends it. */
export async function openAhead(
  instance: Instance,
  world: WorldAhead,
  signal: AbortSignal,
): Promise<Instance> {
  const { mounted } = instance.state
  const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
  try {
    const { layers, limits, hostname } = world
    const spec = { layers, limits, hostname }
    await instance.guest.openWorld(worldSpec({ spec, mounted }, 'main'), wait)
    instance.opened = spec
    return instance
  } catch (error) {
    throw await checkoutFailed(instance, error, signal)
  }
}

/**
 * Gives a started sandbox its owner: identity, limits, and those of its layers that aren't mounted yet. Then opens its world, where it
 * isn't open. A failure or an abort ends the sandbox.
 */
export async function dress(
  context: GvisorContext,
  instance: Instance,
  spec: SandboxSpec,
  { blank, signal }: { readonly blank: boolean; readonly signal: AbortSignal },
): Promise<Sandbox> {
  const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
  try {
    signal.throwIfAborted()
    const { opened } = instance
    if (opened) refuseOther(opened, spec)
    const { mounting, mounted } = mountLayers(context, instance, spec)
    const open = async () => {
      if (mounting) await mounting
      // Before anything of the world lives that could take the port.
      if (spec.relayPort !== undefined) await instance.guest.relay.listen(spec.relayPort, wait)
      if (opened) return
      const given = await ofMachine(context, spec)
      await instance.guest.openWorld({ ...worldSpec({ spec, mounted }, 'main'), ...given }, wait)
    }
    await Promise.all([
      // The longest, so the first to be asked for.
      open(),
      ...(blank ? [limitLeaf(instance, spec)] : []),
      instance.leaf.weigh(spec.cpuShare ?? 1),
      instance.guest.configure(configurationOf(spec), wait),
      instance.save({ mounted, owner: { spec, checkedOutAtMs: Date.now() } }),
    ])
    return instance.sandbox()
  } catch (error) {
    throw await checkoutFailed(instance, error, signal)
  }
}

function refuseOther(opened: WorldAhead, { layers, limits, hostname }: SandboxSpec): void {
  if (isDeepStrictEqual({ layers, limits, hostname }, opened)) return
  throw new Error('its world was opened for another sort of sandbox')
}

async function checkoutFailed(
  instance: Instance,
  error: unknown,
  signal: AbortSignal,
): Promise<DriverError> {
  const fate = await instance.end('stop')
  signal.throwIfAborted()
  return new DriverError('create_failed', `the checkout failed: ${messageOf(error)}`, {
    hint: 'try again; when it fails always, look at the image',
    cause: error,
    fate,
  })
}

/** What its worlds show of the machine: whom to ask for names, and GPUs. */
async function ofMachine(
  { openNetworks, options }: GvisorContext,
  { network, gpus }: SandboxSpec,
): Promise<Partial<WorldSpec>> {
  return {
    ...(network ? { nameServers: await openNetworks.nameServers() } : {}),
    ...(gpus ? shownOf(await lendGpus(options.gpus, gpus)) : {}),
  }
}

/** Ends the episode's world for certain, then opens another. */
export async function openGradeWorld(
  context: GvisorContext,
  instance: Instance,
  grade: GradeWorldSpec,
  signal: AbortSignal,
): Promise<void> {
  const { guest } = instance
  const { spec } = instance.sandbox()
  await refuseAfterKill(instance)
  try {
    if (!grade.beside) await endMain(guest, signal)
    const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
    const layers = typeof grade.shows === 'string' ? spec.layers : grade.shows
    const { mounting, mounted } = mountLayers(context, instance, { layers })
    if (mounting) {
      await mounting
      await instance.save({ mounted })
    }
    const given = await ofMachine(context, spec)
    const world = worldSpec({ spec: { ...spec, layers }, mounted }, grade.world, grade.shows)
    await guest.openWorld({ ...world, ...given }, wait)
  } catch (error) {
    if (error instanceof GuestLost) throw await sandboxGone(instance, error)
    throw error
  }
}

/**
 * A sandbox in which the kernel has killed for memory is on its way out, also where the first kill took only a command of
 * the episode: nothing is graded in it.
 */
async function refuseAfterKill(instance: Instance): Promise<void> {
  if (!(await instance.killedForMemory())) return
  const fate = await instance.end('lost')
  throw new DriverError('sandbox_gone', `sandbox ${instance.hostId} ended: ${fate.kind}`, {
    hint: 'start another one',
    fate,
  })
}

/** Without an answer in time it is not certain, and so not ended. */
async function endMain(guest: Guest, signal: AbortSignal): Promise<void> {
  try {
    await guest.endWorld('main', { signal, timeoutMs: RUNTIME_LIMITS.endWorldMs })
  } catch (error) {
    const notEmpty = error instanceof GuestError && error.code === 'not_empty'
    if (!notEmpty && !(error instanceof GuestTimeout)) throw error
    throw new DriverError('world_not_empty', 'world main would not end', {
      hint: 'grade in a fresh sandbox',
      cause: error,
    })
  }
}

/** What was launched with its limits has them. */
async function limitLeaf({ leaf, opened }: Instance, spec: SandboxSpec): Promise<void> {
  if (!opened) await leaf.limit(leafLimits(spec))
  await leaf.resetPeak()
}

/** Into the running sandbox, at the mount points that are free. Undefined: all are there. */
function mountLayers(
  { helper }: GvisorContext,
  { hostId, paths, state }: Instance,
  spec: Pick<SandboxSpec, 'layers'>,
): { readonly mounting: Promise<unknown> | undefined; readonly mounted: readonly string[] } {
  const mounted = [...state.mounted]
  const missing = spec.layers.filter(({ digest }) => !mounted.includes(digest))
  if (mounted.length + missing.length > RUNTIME_LIMITS.layersMax) {
    throw new Error(`it has no mount points left for ${missing.length} layers`)
  }
  const mounts = missing.map(({ path, digest }) =>
    helper.mount({
      controlSocket: paths.controlSocket,
      container: hostId,
      source: path,
      destination: layerMountPoint(mounted.push(digest) - 1),
      deadlineMs: RUNTIME_LIMITS.checkoutMs,
    }),
  )
  return { mounting: mounts.length > 0 ? Promise.all(mounts) : undefined, mounted }
}

/** `shows` tells a grader's world from the episode's. */
function worldSpec(
  {
    spec,
    mounted,
  }: {
    readonly spec: WorldAhead & Pick<SandboxSpec, 'checkpointable'>
    readonly mounted: readonly string[]
  },
  world: string,
  shows?: GradeWorldSpec['shows'],
): WorldSpec {
  const { limits, layers } = spec
  const sizes = sizesOf(limits)
  const grade = shows !== undefined
  const disk = sizes.disks.some((each) => each.world === world)
  return {
    world,
    layers: layers.map(({ digest }) => layerMountPoint(mounted.indexOf(digest))).reverse(),
    ...(shows === 'main' ? { below: 'main' } : {}),
    ...(disk ? { disk } : {}),
    upperBytes: grade ? sizes.gradeUpperBytes : sizes.upperBytes,
    upperInodes: grade ? sizes.gradeUpperInodes : sizes.upperInodes,
    shmBytes: sizes.shmBytes,
    pidsMax: limits.pidsMax,
    ...(limits.userPidsMax === undefined ? {} : { userPidsMax: limits.userPidsMax }),
    nofileMax: limits.nofileMax,
    ...(limits.fileBytesMax === undefined ? {} : { fileBytesMax: limits.fileBytesMax }),
    hostname: spec.hostname,
    memoryTotalBytes: limits.memoryBytes,
    cpus: Math.max(1, Math.ceil(limits.cpus)),
    ...(spec.checkpointable ? { identity: true } : {}),
  }
}

async function sandboxGone(instance: Instance, cause: GuestLost): Promise<DriverError> {
  const fate = await instance.gone
  return new DriverError('sandbox_gone', `sandbox ${instance.hostId} ended: ${fate.kind}`, {
    hint: 'start another one',
    cause,
    fate,
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
