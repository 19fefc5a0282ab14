import { stat } from 'node:fs/promises'
import { DriverError } from '../driver-error.ts'
import type { CdiEdits, CdiHook } from './cdi-file.ts'
import { type GpuSettings, type KnownGpu, knownGpus } from './machine-gpus.ts'

/** What a sandbox with GPUs is given of the machine; every path is checked to be there. */
export interface LentGpus {
  readonly nodes: readonly { readonly path: string; readonly hostPath: string }[]
  /** Files and directories of the machine, shown read-only at a path of the sandbox. */
  readonly mounts: readonly { readonly hostPath: string; readonly path: string }[]
  readonly env: Readonly<Record<string, string>>
}

/**
 * All edits of some devices together, in the order that CDI says: those of their file first, each once. Hooks are not run: they would change
 * a root on the host, as root. What those of NVIDIA do is done otherwise.
 *
 * | hook | here |
 * |---|---|
 * | `create-symlinks` | the target's file is shown under the link's name too |
 * | `update-ldcache` | its folders are in `LD_LIBRARY_PATH` |
 * | `chmod`, `disable-device-node-modification`, `enable-cuda-compat` | nothing: there is no such place in a sandbox; libraries of an image are left alone |
 * | any other | refused by name |
 *
 * Fails with `unsupported`.
 */
export async function lendGpus(settings: GpuSettings, names: readonly string[]): Promise<LentGpus> {
  const { gpus } = await knownGpus(settings)
  const wanted = names.map((name) => gpus.find((gpu) => gpu.name === name) ?? lost(name))
  const edits = [...new Set(wanted.flatMap((gpu: KnownGpu) => gpu.edits))]
  const nodes = new Map<string, string>()
  for (const { path, hostPath = path } of edits.flatMap((each) => each.deviceNodes)) {
    nodes.set(path, hostPath)
  }
  const mounts = await mountsOf(edits)
  const links = edits.flatMap((each) => each.hooks).flatMap(linksOf)
  for (const { target, path } of links) {
    const hostPath = mounts.get(absolute(target, path))
    if (hostPath !== undefined) mounts.set(path, hostPath)
  }
  return {
    nodes: [...nodes].map(([path, hostPath]) => ({ path, hostPath })),
    mounts: [...mounts].map(([path, hostPath]) => ({ path, hostPath })),
    env: environmentOf(edits),
  }
}

/** Sockets of the host can't be reached from a sandbox, and are left out. */
async function mountsOf(edits: readonly CdiEdits[]): Promise<Map<string, string>> {
  const mounts = new Map<string, string>()
  for (const { hostPath, containerPath } of edits.flatMap((each) => each.mounts)) {
    const found = await stat(hostPath).catch(() => undefined)
    if (!found) throw refused(`there is no ${hostPath} on this machine, which its CDI file names`)
    if (found.isFile() || found.isDirectory()) mounts.set(containerPath, hostPath)
  }
  return mounts
}

function environmentOf(edits: readonly CdiEdits[]): Record<string, string> {
  const env: Record<string, string> = {}
  for (const text of edits.flatMap((each) => each.env)) {
    const at = text.indexOf('=')
    env[text.slice(0, at)] = text.slice(at + 1)
  }
  const folders = [...new Set(edits.flatMap((each) => each.hooks).flatMap(foldersOf))]
  if (folders.length > 0) env.LD_LIBRARY_PATH = folders.join(':')
  return env
}

const NOTHING_TO_DO = new Set(['chmod', 'disable-device-node-modification', 'enable-cuda-compat'])

/** `nvidia-cdi-hook VERB …`, `nvidia-ctk hook VERB …`. */
function verbOf({ path, args }: CdiHook): string {
  const words = args.slice(1).filter((arg) => arg !== 'hook')
  const verb = words[0] ?? ''
  if (verb === 'create-symlinks' || verb === 'update-ldcache' || NOTHING_TO_DO.has(verb))
    return verb
  throw refused(
    `its CDI file wants the hook ${JSON.stringify([path, ...args.slice(1)].join(' '))}, which is not known`,
  )
}

function linksOf(hook: CdiHook): readonly { readonly target: string; readonly path: string }[] {
  if (verbOf(hook) !== 'create-symlinks') return []
  return valuesOf(hook, 'link').flatMap((value) => {
    const [target = '', path = ''] = value.split('::')
    return path.startsWith('/') ? [{ target, path }] : []
  })
}

function foldersOf(hook: CdiHook): readonly string[] {
  return verbOf(hook) === 'update-ldcache' ? valuesOf(hook, 'folder') : []
}

/** `--name value` and `--name=value`. */
function valuesOf({ args }: CdiHook, name: string): readonly string[] {
  return args.flatMap((arg, index) => {
    if (arg === `--${name}`) return [args[index + 1] ?? '']
    return arg.startsWith(`--${name}=`) ? [arg.slice(name.length + 3)] : []
  })
}

function absolute(target: string, link: string): string {
  return new URL(target, `file://${link}`).pathname
}

function lost(name: string): never {
  throw refused(`the machine has no ${name} any more`)
}

function refused(why: string): DriverError {
  return new DriverError('unsupported', `the sandbox can’t be given its GPU: ${why}`, {
    hint: 'make the machine’s CDI file anew, with NVIDIA’s toolkit: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml',
  })
}
