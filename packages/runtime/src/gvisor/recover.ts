import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { diskMediumOf } from '@sandlot/protocol'
import type { EndedSandbox, Recovery, Sandbox, SandboxSpec } from '../driver.ts'
import { attachGuest } from '../guest/attach.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { inBatches } from './batches.ts'
import type { GvisorContext } from './context.ts'
import { DiskFiles, sweepDiskNames } from './disk-files.ts'
import { Instance } from './instance.ts'
import { checkpointMs } from './memory-time.ts'
import { isHostId, sandboxesDirectory, sandboxPaths } from './paths.ts'
import { loadState, type SandboxState } from './state.ts'

/**
 * Brings this driver in line with what an earlier one left. A sandbox is known by its cgroup leaf or its directory.
 *
 * | leaf has processes | state has an owner | agent answers as that owner | then |
 * |---|---|---|---|
 * | yes | yes | yes | adopted |
 * | yes | yes | no | ended, with a fate |
 * | yes | yes | yes, but its world was never opened, or it is a copy that was never told who it is | removed: half made |
 * | no | yes | | removed, with a fate |
 * | | no | | removed: a blank, or half made |
 */
export async function recover(context: GvisorContext, signal: AbortSignal): Promise<Recovery> {
  const adopted: Sandbox[] = []
  const ended: EndedSandbox[] = []
  const unreadable: string[] = []
  await inBatches(await found(context), RUNTIME_LIMITS.adoptAtOnce, async (hostId) => {
    signal.throwIfAborted()
    const paths = sandboxPaths(context.options.stateDirectory, hostId)
    const state = await loadState(paths)
    // Its start writes it first: only what was damaged is there and says nothing.
    if (!state && existsSync(paths.state)) unreadable.push(paths.state)
    const instance = await recoverOne(context, { hostId, state }, signal)
    if (!instance) return
    const { owner } = instance.state
    if (!instance.ending) adopted.push(instance.sandbox())
    else if (owner) ended.push({ id: owner.spec.id, hostId, fate: await instance.gone })
  })
  await sweepDiskNames(context.options.dataDirectory, Date.now())
  return { adopted, ended, unreadable }
}

/** Host ids of all that an earlier driver may have left, without those of this one. */
async function found({ cgroups, options, instances }: GvisorContext): Promise<readonly string[]> {
  const directory = sandboxesDirectory(options.stateDirectory)
  const names = [...(await cgroups.list()), ...(await readdir(directory).catch(() => []))]
  return [...new Set(names)].filter((name) => isHostId(name) && !instances.has(name))
}

async function recoverOne(
  context: GvisorContext,
  { hostId, state }: { readonly hostId: string; readonly state: SandboxState | undefined },
  signal: AbortSignal,
): Promise<Instance | undefined> {
  const instance = new Instance(
    context,
    state ?? { hostId, startedAtMs: 0, sentryPid: 0, mounted: [] },
  )
  const alive = (await instance.leaf.processes()).length > 0
  if (!state?.owner || !alive) {
    await instance.end(state?.owner ? 'lost' : 'stop', 'it ended while no daemon was there')
    // A directory without a leaf: the leaf's removal came first.
    await rm(instance.paths.directory, { recursive: true, force: true })
    return state?.owner ? instance : undefined
  }
  if (diskMediumOf(state.owner.spec.limits) === 'disk') {
    instance.holdDisk(await DiskFiles.find(state))
  }
  const found = await adopt(instance, state.owner.spec, signal)
  if (found === 'half made') {
    await instance.end('stop', 'its world was never opened')
    return undefined
  }
  if (found !== 'adopted') await instance.end('lost', found.why)
  else if (state.owner.spec.network) await guard(context, instance)
  return instance
}

/** Without the rules nothing would keep it from what no sandbox may reach. */
async function guard({ openNetworks }: GvisorContext, instance: Instance): Promise<void> {
  try {
    await openNetworks.guard()
  } catch (error) {
    await instance.end('lost', error instanceof Error ? error.message : String(error))
  }
}

/** Makes it ours again, or says why it can't be. */
async function adopt(
  instance: Instance,
  { id, limits }: SandboxSpec,
  signal: AbortSignal,
): Promise<'adopted' | 'half made' | { readonly why: string }> {
  try {
    const guest = await attachGuest({
      inPath: instance.paths.input,
      outPath: instance.paths.output,
      resuming: true,
      vetEnd: instance.vetEnd,
      // The runtime goes on writing its memory without a daemon, and it stands still until that is over.
      timeoutMs: RUNTIME_LIMITS.adoptMs + (instance.state.saving ? checkpointMs(limits) : 0),
      signal,
    })
    instance.attach(guest)
    const { sandbox, worlds, frozen } = guest.hello
    if (frozen === true && sandbox !== id) return 'half made'
    if (sandbox !== '' && sandbox !== id) return { why: `its agent says it is ${sandbox}` }
    const opened = worlds.some(({ world, state }) => world === 'main' && state !== 'prepared')
    if (!opened) return 'half made'
    // The daemon died while it saved or resumed it.
    if (frozen === true) await guest.thaw(undefined, { signal })
    if (instance.state.saving) await instance.save({ saving: false })
    const overMemory = await instance.killedForMemory()
    return overMemory ? { why: 'it went over its memory while no daemon was there' } : 'adopted'
  } catch (error) {
    signal.throwIfAborted()
    return { why: `its agent did not answer: ${error instanceof Error ? error.message : error}` }
  }
}
