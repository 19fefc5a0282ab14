import { mkdir, writeFile } from 'node:fs/promises'
import type { LeafLimits } from '../cgroup/cgroups.ts'
import { type CheckpointSource, DriverError, type Layer } from '../driver.ts'
import { attachGuest } from '../guest/attach.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { run } from '../process/run.ts'
import { bundleConfig } from './bundle.ts'
import type { GvisorContext } from './context.ts'
import { DiskFiles, makeDiskDirectories } from './disk-files.ts'
import { gpuDriverRefused } from './gpu-driver.ts'
import { HelperError, type Launched } from './helper.ts'
import { nobody } from './identity.ts'
import { type IdentitySource, makeIdentityImage } from './identity-image.ts'
import { Instance } from './instance.ts'
import { lendNodes } from './lent.ts'
import { restoreMs } from './memory-time.ts'
import { newHostId } from './paths.ts'
import { runscFlags } from './runsc.ts'
import type { SandboxSizes } from './sizing.ts'

export interface LaunchOptions {
  /** Mounts of the sandbox's own specification; a blank has none. */
  readonly layers: readonly Layer[]
  readonly limits: LeafLimits
  /** Writable layers on the machine's disk. Default: none. */
  readonly disks?: SandboxSizes['disks']
  /** What tells it from its copies. Default: it is never copied. */
  readonly identity?: IdentitySource | undefined
  /** It has an interface of its own. Default: it has none. */
  readonly network?: 'open' | undefined
  /** Names of GPUs that it is given. Default: none. */
  readonly gpus?: readonly string[] | undefined
  /** Nobody waits for it: its world is prepared before it counts as started, so that a checkout is short; a restored one is held. */
  readonly ahead: boolean
  /** Restored from there instead of started. */
  readonly checkpoint?: CheckpointSource
  readonly signal: AbortSignal
}

/**
 * Starts a sandbox and waits for its agent's hello, `ahead` also for its world. Starts share the machine: no more than `startsAtOnce` run, the
 * others wait in order. A failed or aborted start leaves nothing behind. Fails with `create_failed`.
 */
export function launch(context: GvisorContext, options: LaunchOptions): Promise<Instance> {
  return context.starts.use(options.signal, async () => {
    const { agentImage } = await context.ready()
    const state = {
      hostId: newHostId(),
      startedAtMs: Date.now(),
      sentryPid: 0,
      mounted: options.layers.map(({ digest }) => digest),
    }
    const instance = new Instance(context, state, options.checkpoint)
    try {
      await prepare(context, instance, agentImage, options)
      await start(context, instance, options)
      if (options.ahead)
        await (options.checkpoint ? holdUp : prepareWorld)(instance, options.signal)
      return instance
    } catch (error) {
      const { detail } = await instance.end('stop')
      options.signal.throwIfAborted()
      throw startFailed(error, detail)
    }
  })
}

async function prepare(
  context: GvisorContext,
  instance: Instance,
  agentImage: string,
  { layers, limits, disks = [], identity, network, gpus }: LaunchOptions,
): Promise<void> {
  const { paths, leaf, hostId } = instance
  const { dataDirectory } = context.options
  await mkdir(paths.root, { recursive: true, mode: 0o700 })
  // The state comes before anything that could live: a later daemon finds the one by the other.
  await instance.save({})
  const names = network && (await context.openNetworks.make(hostId))
  const config = bundleConfig({
    agentImage,
    emptyRoot: context.emptyDirectory,
    layers,
    disks: await makeDiskDirectories(dataDirectory, hostId, disks),
    identity: identity && paths.identity,
    networkNamespace: names?.namespacePath,
    lent: gpus && (await lendNodes(context.options.gpus, gpus)),
  })
  await Promise.all([
    leaf.create(limits),
    writeFile(paths.config, JSON.stringify(config), { mode: 0o600 }),
    identity && makeIdentityImage(paths.identity, identity),
    context.helper.fifos({ in: paths.input, out: paths.output }),
  ])
}

async function start(
  context: GvisorContext,
  instance: Instance,
  options: LaunchOptions,
): Promise<void> {
  const { signal, checkpoint } = options
  const failed = new AbortController()
  // The daemon's ends are open before the sandbox's, so its end can't be missed.
  const attaching = attachGuest({
    inPath: instance.paths.input,
    outPath: instance.paths.output,
    resuming: false,
    restored: checkpoint !== undefined,
    vetEnd: instance.vetEnd,
    timeoutMs: startMs(options),
    signal: AbortSignal.any([signal, failed.signal]),
  })
  // Until it is awaited, its failure waits too.
  attaching.catch(() => {})
  try {
    const launched = await launchUnlessAborted(context, instance, options)
    if (options.disks?.length) {
      instance.holdDisk(await DiskFiles.take(context.options.dataDirectory, instance.hostId))
    }
    const saving = instance.save({ sentryPid: launched.sentryPid })
    instance.attach(await attaching)
    await saving
  } catch (error) {
    failed.abort(error)
    await attaching.then((guest) => guest.close()).catch(() => {})
    throw error
  }
}

async function prepareWorld({ guest }: Instance, signal: AbortSignal): Promise<void> {
  await guest.prepareWorld('main', { signal, timeoutMs: RUNTIME_LIMITS.startMs })
}

/**
 * It goes on for a moment, as nobody: what a checkout will ask of agent and world is in place then. From here on nothing in it runs.
 */
async function holdUp(instance: Instance, signal: AbortSignal): Promise<void> {
  const { guest } = instance
  const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
  await guest.thaw(nobody(), wait)
  await guest.freeze(wait)
  await instance.hold()
}

/** The helper can't be interrupted, but what it started can be killed; it has its own deadline besides. */
async function launchUnlessAborted(
  context: GvisorContext,
  { hostId, paths, leaf }: Instance,
  options: LaunchOptions,
): Promise<Launched> {
  const { signal, checkpoint, network } = options
  const { runsc, stateDirectory, systrap } = context.options
  const flags = runscFlags(stateDirectory, paths, systrap, network ? 'sandbox' : 'none')
  const verb =
    checkpoint === undefined
      ? ['create']
      : ['restore', '--detach', '--image-path', checkpoint.directory]
  signal.throwIfAborted()
  const kill = () => void leaf.kill(RUNTIME_LIMITS.killMs).catch(() => false)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const launched = await context.helper.launch({
      in: paths.input,
      out: paths.output,
      pipeBytes: RUNTIME_LIMITS.pipeBytes,
      stderr: paths.agentLog,
      log: paths.runscLog,
      cgroupProcs: leaf.joinFiles,
      argv: [
        runsc,
        ...flags,
        ...verb,
        '--bundle',
        paths.directory,
        '--pid-file',
        paths.pid,
        hostId,
      ],
      start: checkpoint === undefined && network === undefined,
      pidFile: paths.pid,
      controlSocket: paths.controlSocket,
      container: hostId,
      deadlineMs: startMs(options),
    })
    if (network) await takeOverInterface(runsc, [...flags, 'start', hostId], signal)
    return launched
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

/** The runtime's own start looks at the namespace, and brings what it finds there into the sandbox. */
async function takeOverInterface(
  runsc: string,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { exitCode, stderr, problem } = await run(runsc, argv, {
    timeoutMs: RUNTIME_LIMITS.startMs,
    signal,
  })
  if (exitCode !== 0) throw new HelperError('start', stderr.trim() || problem || 'runsc failed')
}

function startMs({ checkpoint }: LaunchOptions): number {
  return checkpoint === undefined ? RUNTIME_LIMITS.startMs : restoreMs(checkpoint.limits)
}

function startFailed(error: unknown, detail: string): DriverError {
  if (error instanceof DriverError) return error
  const log = error instanceof HelperError && error.log ? ` (${error.log.trim()})` : ''
  const driver = gpuDriverRefused(log)
  if (driver) return driver
  const reason = error instanceof Error ? error.message : String(error)
  return new DriverError('create_failed', `the sandbox did not start: ${reason}${log}`, {
    hint: 'run `sandlot doctor`; when it finds nothing, try again',
    cause: detail === 'stop was called' ? error : new Error(detail, { cause: error }),
  })
}
