import { diskMediumOf } from '@sandlot/protocol'
import {
  type Blank,
  type BlankOptions,
  type CheckpointFacts,
  type CheckpointOptions,
  type CheckpointSource,
  type DiskSpace,
  type DriverCapabilities,
  DriverError,
  type Fate,
  type GradeWorldSpec,
  type MemorySpace,
  type ProbeFinding,
  type Reconciled,
  type ReconcileOptions,
  type Recovery,
  type RefusedPackets,
  type RuntimeDriver,
  type Sandbox,
  type SandboxSpec,
  type Usage,
  type Wait,
} from '../driver.ts'
import { lendGpus } from '../gpu/lend.ts'
import { type MachineGpus, machineGpus } from '../gpu/machine-gpus.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { inBatches } from './batches.ts'
import { blankLimits, dress, leafLimits, openAhead, openGradeWorld } from './checkout.ts'
import { checkpoint } from './checkpoint.ts'
import { readFacts } from './checkpoint-files.ts'
import { refuseIncompatible } from './compatible.ts'
import { GvisorContext } from './context.ts'
import { diskSpace } from './disk-files.ts'
import type { Instance } from './instance.ts'
import { launch } from './launch.ts'
import { memorySpace } from './memory-space.ts'
import type { GvisorOptions } from './options.ts'
import { probeMachine } from './probe.ts'
import { Reconciler } from './reconcile.ts'
import { recover } from './recover.ts'
import { goOn, restoreCopy } from './restore.ts'
import { sizesOf } from './sizing.ts'

/** Sandboxes in gVisor: each a sentry of its own, started blank and dressed by hot mounts, or cold. */
export class GvisorDriver implements RuntimeDriver {
  readonly name = 'gvisor'
  readonly capabilities: DriverCapabilities = {
    hotMount: true,
    memorySnapshot: true,
    limits: true,
  }
  readonly #context: GvisorContext
  readonly #reconciler: Reconciler
  #disposed: Promise<void> | undefined

  constructor(options: GvisorOptions) {
    this.#context = new GvisorContext(options)
    this.#reconciler = new Reconciler(this.#context)
  }

  probe(wait: Wait = {}): Promise<readonly ProbeFinding[]> {
    return probeMachine(this.#context.options, wait.signal)
  }

  async recover(wait: Wait = {}): Promise<Recovery> {
    await this.#context.ready()
    return recover(this.#context, wait.signal ?? never)
  }

  async checkCheckpoint(checkpoint: CheckpointSource): Promise<void> {
    const facts = await readFacts(checkpoint.directory)
    refuseIncompatible(facts, await this.#context.runtimeFacts(), checkpoint)
  }

  async createBlank(options: BlankOptions = {}): Promise<Blank> {
    const { world, layers = [], checkpoint, signal = never } = options
    const ahead = { ahead: true, signal }
    if (checkpoint) return (await restoreCopy(this.#context, checkpoint, { signal })).blank()
    if (world) {
      const { layers, limits } = world
      const { disks } = sizesOf(limits)
      const options = { layers, limits: leafLimits(world), disks, ...ahead }
      const instance = await launch(this.#context, options)
      return (await openAhead(instance, world, signal)).blank()
    }
    return (await launch(this.#context, { layers, limits: blankLimits(), ...ahead })).blank()
  }

  async checkout(blank: Blank, spec: SandboxSpec, wait: Wait = {}): Promise<Sandbox> {
    const instance = this.#living(blank)
    const { signal = never } = wait
    if (instance.state.owner) throw usedUp(blank)
    checkSpec(spec)
    if (instance.checkpoint) return goOn(instance, { ...spec, checkpointable: true }, signal)
    const noPlace = diskMediumOf(spec.limits) === 'disk' && !instance.opened
    if (spec.checkpointable || spec.network || spec.gpus || noPlace) throw needsColdStart(spec)
    return dress(this.#context, instance, spec, { blank: true, signal })
  }

  async create(spec: SandboxSpec, wait: Wait = {}): Promise<Sandbox> {
    checkSpec(spec)
    const signal = wait.signal ?? never
    const { layers, network, gpus } = spec
    const { disks } = sizesOf(spec.limits)
    const identity = spec.checkpointable ? 'drawn' : undefined
    const instance = await launch(this.#context, {
      layers,
      limits: leafLimits(spec),
      disks,
      identity,
      network,
      gpus,
      ahead: false,
      signal,
    })
    return dress(this.#context, instance, spec, { blank: false, signal })
  }

  async openGradeWorld(sandbox: Sandbox, grade: GradeWorldSpec, wait: Wait = {}): Promise<void> {
    await openGradeWorld(this.#context, this.#living(sandbox), grade, wait.signal ?? never)
  }

  async checkpoint(
    sandbox: Sandbox,
    directory: string,
    { leaveRunning, signal = never }: CheckpointOptions,
  ): Promise<CheckpointFacts> {
    const instance = this.#living(sandbox)
    return checkpoint(this.#context, instance, directory, { leaveRunning, signal })
  }

  async restore(spec: SandboxSpec, directory: string, wait: Wait = {}): Promise<Sandbox> {
    checkSpec(spec)
    const { layers, limits } = spec
    const { signal = never } = wait
    const checkpoint = { directory, layers, limits }
    const instance = await restoreCopy(this.#context, checkpoint, { id: spec.id, signal })
    return goOn(instance, { ...spec, checkpointable: true }, signal)
  }

  reconcile(options: ReconcileOptions): Promise<Reconciled> {
    return this.#reconciler.look(options)
  }

  gpus(): Promise<MachineGpus> {
    return machineGpus(this.#context.options.gpus)
  }

  async gpuEnvironment(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
    return (await lendGpus(this.#context.options.gpus, names)).env
  }

  async refusedPackets(): Promise<readonly RefusedPackets[]> {
    const { instances, openNetworks } = this.#context
    const refused = await openNetworks.refusedPackets()
    if (refused.length === 0) return []
    const owners = new Map([...instances.keys()].map((id) => [openNetworks.names(id).link, id]))
    return refused.flatMap(({ link, ...what }) => {
      const hostId = owners.get(link)
      return hostId === undefined ? [] : [{ hostId, ...what }]
    })
  }

  async usage(sandbox: Sandbox): Promise<Usage> {
    return this.#living(sandbox).usage()
  }

  async diskSpace(): Promise<DiskSpace> {
    const { instances, options } = this.#context
    const living = [...instances.values()].flatMap(({ disk }) => disk ?? [])
    return diskSpace(options.dataDirectory, living)
  }

  async memorySpace(): Promise<MemorySpace> {
    return memorySpace(this.#context.cgroups)
  }

  stop(sandbox: Sandbox | Blank, wait: Wait = {}): Promise<Fate> {
    const instance = this.#context.instances.get(sandbox.hostId)
    return unlessAborted(wait.signal, instance ? instance.end('stop') : sandbox.gone)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#dispose()
    return this.#disposed
  }

  async #dispose(): Promise<void> {
    const { instances } = this.#context
    await inBatches(instances.values(), RUNTIME_LIMITS.stopsAtOnce, async (instance) => {
      await instance.end('stop')
    })
    await this.#context.dispose()
  }

  #living({ hostId, gone }: Sandbox | Blank): Instance {
    const instance = this.#context.instances.get(hostId)
    if (instance && !instance.ending) return instance
    throw new DriverError('sandbox_gone', `sandbox ${hostId} has ended`, {
      hint: 'start another one',
      cause: gone,
    })
  }
}

/** For callers without a signal. */
const never = new AbortController().signal

function checkSpec({ layers, id, checkpointable, network, gpus }: SandboxSpec): void {
  if (checkpointable && network) throw notSaved(id, 'an interface of its own')
  if (checkpointable && gpus) throw notSaved(id, 'a GPU')
  if (layers.length > 0 && layers.length <= RUNTIME_LIMITS.layersMax) return
  throw new DriverError('create_failed', `sandbox ${id} has ${layers.length} layers`, {
    hint: `give it 1 to ${RUNTIME_LIMITS.layersMax}; join those of an image with more`,
  })
}

function needsColdStart({ id }: SandboxSpec): DriverError {
  return new DriverError('unsupported', `sandbox ${id} can't be made of this blank`, {
    hint: 'use create: hot-mounted layers are lost to a checkpoint, and files on the disk have their place from the start',
  })
}

function notSaved(id: string, what: string): DriverError {
  return new DriverError(
    'unsupported',
    `the memory of sandbox ${id} can’t be saved: it has ${what}`,
    {
      hint: 'leave out `checkpointable`, and start from an image or from files rather than from memory',
    },
  )
}

function usedUp({ hostId }: Blank): DriverError {
  return new DriverError('create_failed', `blank ${hostId} was checked out before`, {
    hint: 'a blank is used once: take another one',
  })
}
