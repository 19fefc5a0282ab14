import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
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
  type FateKind,
  type GradeWorldSpec,
  type MemorySpace,
  type ProbeFinding,
  type Reconciled,
  type Recovery,
  type RefusedPackets,
  type RuntimeDriver,
  type Sandbox,
  type SandboxSpec,
  type Usage,
  type Wait,
  type WorldAhead,
} from '../driver.ts'
import type { MachineGpus } from '../gpu/machine-gpus.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { type FakeCue, obey } from './cue.ts'
import { factsOf } from './facts.ts'
import { type FakeCheckpoint, FakeMachine } from './machine.ts'
import { gone, unsupported } from './refusals.ts'
import { FakeSandbox } from './sandbox.ts'
import { type FakeClock, type FakeScript, fewCommands, machineClock } from './script.ts'
import { worldSpec } from './world-spec.ts'

export interface FakeDriverOptions {
  /** What commands do. Default: `fewCommands`. */
  readonly script?: FakeScript
  readonly clock?: FakeClock
  /** Where sandboxes live, so that a second driver can find them. Default: one of its own. */
  readonly machine?: FakeMachine
  /** Asked before each start of a sandbox, with its number from 1. */
  readonly onStart?: (start: number) => FakeCue
  /** Asked before each checkout and cold start. */
  readonly onDress?: (spec: SandboxSpec) => FakeCue
  /** What a start takes on the clock. Default 0. */
  readonly startMs?: number
  readonly capabilities?: Partial<DriverCapabilities>
  /** Default: none. */
  readonly gpus?: () => MachineGpus
  /** What the machine says of its disk. Default: a terabyte, all of it free. */
  readonly disk?: () => DiskSpace
  /** Of its memory. Default: a terabyte, all of it there. */
  readonly memory?: () => MemorySpace
}

const TERABYTE = 2 ** 40
const EMPTY_DISK: DiskSpace = { totalBytes: TERABYTE, freeBytes: TERABYTE, heldBytes: 0 }

/** A driver in memory. An idle sandbox of it holds no timer and no descriptor; 16,000 of them are nothing. */
export class FakeDriver implements RuntimeDriver {
  readonly name = 'fake'
  readonly capabilities: DriverCapabilities
  readonly machine: FakeMachine
  readonly #script: FakeScript
  readonly #clock: FakeClock
  readonly #options: FakeDriverOptions
  #starts = 0

  constructor(options: FakeDriverOptions = {}) {
    this.#options = options
    this.#script = options.script ?? fewCommands
    this.#clock = options.clock ?? machineClock
    this.machine = options.machine ?? new FakeMachine()
    this.capabilities = {
      hotMount: true,
      memorySnapshot: false,
      limits: false,
      ...options.capabilities,
    }
  }

  async probe(): Promise<readonly ProbeFinding[]> {
    return [{ name: 'fake', ok: true, found: 'sandboxes in memory', required: true }]
  }

  async recover(): Promise<Recovery> {
    const adopted: Sandbox[] = []
    const ended: { id: string; hostId: string; fate: Fate }[] = []
    for (const found of this.machine.all()) {
      if (!found.dressed) found.end('stopped', 'a blank that nobody owns')
      else if (found.fate) ended.push({ id: found.id, hostId: found.hostId, fate: found.fate })
      else adopted.push(found.sandbox())
      if (found.fate) this.machine.remove(found.hostId)
    }
    return { adopted, ended, unreadable: [] }
  }

  async createBlank({ checkpoint, world, ...wait }: BlankOptions = {}): Promise<Blank> {
    if (checkpoint && !this.capabilities.memorySnapshot) throw unsupported('memory snapshots')
    const saved = checkpoint && this.#saved(checkpoint)
    const started = await this.#start(wait, saved)
    started.opened = world
    return started.blank()
  }

  async checkCheckpoint(checkpoint: CheckpointSource): Promise<void> {
    this.#saved(checkpoint)
  }

  async checkout(blank: Blank, spec: SandboxSpec, wait: Wait = {}): Promise<Sandbox> {
    const found = this.machine.get(blank.hostId)
    if (!found || found.fate) throw gone(blank.hostId, found?.fate)
    if (found.dressed) {
      throw new DriverError('create_failed', `blank ${blank.hostId} was checked out before`, {
        hint: 'a blank is used once: take another one',
      })
    }
    if (found.opened && !isOf(found.opened, spec)) {
      await this.stop(blank)
      throw new DriverError('create_failed', 'its world was opened for another sort of sandbox', {
        hint: 'take another one',
      })
    }
    if (found.restored) return this.#goOn(found, { ...spec, checkpointable: true }, wait)
    const noPlace = diskMediumOf(spec.limits) === 'disk' && !found.opened
    if (!this.capabilities.hotMount || spec.checkpointable || noPlace) {
      throw unsupported('checkout of this')
    }
    return this.#dress(found, spec, wait)
  }

  async create(spec: SandboxSpec, wait: Wait = {}): Promise<Sandbox> {
    return this.#dress(await this.#start(wait), spec, wait)
  }

  async openGradeWorld(sandbox: Sandbox, grade: GradeWorldSpec, wait: Wait = {}): Promise<void> {
    wait.signal?.throwIfAborted()
    const found = this.#living(sandbox)
    const isOther = typeof grade.shows !== 'string'
    if (isOther && !this.capabilities.hotMount) throw unsupported('a world of other layers')
    if (!grade.beside) await found.guest.endWorld('main', wait)
    await found.guest.openWorld(worldSpec(found.spec, grade.world, grade.shows))
  }

  async checkpoint(
    sandbox: Sandbox,
    directory: string,
    options: CheckpointOptions,
  ): Promise<CheckpointFacts> {
    options.signal?.throwIfAborted()
    const { guest, spec } = this.#living(sandbox)
    const saved = this.capabilities.memorySnapshot && spec.checkpointable === true
    if (!saved) throw unsupported('memory snapshots of this sandbox')
    const facts = factsOf(spec)
    await mkdir(directory, { recursive: true })
    this.machine.checkpoints.set(directory, { facts, memory: guest.save() })
    if (!options.leaveRunning) await this.stop(sandbox)
    return facts
  }

  async restore(spec: SandboxSpec, directory: string, wait: Wait = {}): Promise<Sandbox> {
    const { layers, limits } = spec
    const blank = await this.createBlank({ ...wait, checkpoint: { directory, layers, limits } })
    return this.checkout(blank, spec, wait)
  }

  /** There is no machine besides what it knows. */
  async reconcile(): Promise<Reconciled> {
    return { removed: [], stuck: [], dead: [], unwanted: [] }
  }

  /** None has an interface. */
  async refusedPackets(): Promise<readonly RefusedPackets[]> {
    return []
  }

  async gpus(): Promise<MachineGpus> {
    return this.#options.gpus?.() ?? { devices: [], problems: [] }
  }

  async gpuEnvironment(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
    return { FAKE_GPUS: names.join(',') }
  }

  async usage(sandbox: Sandbox): Promise<Usage> {
    return this.#living(sandbox).usage
  }

  async diskSpace(): Promise<DiskSpace> {
    return this.#options.disk?.() ?? EMPTY_DISK
  }

  async memorySpace(): Promise<MemorySpace> {
    return this.#options.memory?.() ?? { totalBytes: TERABYTE, availableBytes: TERABYTE }
  }

  async stop(sandbox: Sandbox | Blank): Promise<Fate> {
    const found = this.machine.get(sandbox.hostId)
    if (!found) return sandbox.gone
    const fate = found.end('stopped', 'stop was called')
    this.machine.remove(sandbox.hostId)
    return fate
  }

  /** For tests: a sandbox or a blank dies in this way. */
  kill(id: string, kind: FateKind, detail = 'killed by the test'): void {
    const found = this.machine.all().find((each) => each.id === id || each.hostId === id)
    if (!found) throw new Error(`no sandbox ${id}`)
    found.end(kind, detail)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.machine.all()) await this.stop(each.blank())
  }

  #saved({ directory, ...wanted }: CheckpointSource): FakeCheckpoint {
    const saved = existsSync(directory) ? this.machine.checkpoints.get(directory) : undefined
    if (saved && isDeepStrictEqual(saved.facts, factsOf(wanted))) return saved
    const what = 'layers or limits of the checkpoint are others'
    const hint = 'take the snapshot again'
    throw new DriverError('snapshot_incompatible', what, { hint })
  }

  async #start(wait: Wait, restored?: FakeCheckpoint): Promise<FakeSandbox> {
    await obey(this.#options.onStart?.(++this.#starts), wait)
    const { startMs = 0 } = this.#options
    if (startMs > 0) await this.#pause(startMs, wait)
    return this.machine.add(new FakeSandbox(this.#script, this.#clock, restored))
  }

  async #dress(found: FakeSandbox, spec: SandboxSpec, wait: Wait): Promise<Sandbox> {
    try {
      await obey(this.#options.onDress?.(spec), wait)
      if (found.fate) throw gone(found.hostId, found.fate)
      const { id, detachedMs } = spec
      found.dress(spec)
      await found.guest.configure({ sandbox: id, detachedMs })
      if (spec.relayPort !== undefined) await found.guest.relay.listen(spec.relayPort)
      await found.guest.openWorld(worldSpec(spec, 'main'))
      return found.sandbox()
    } catch (error) {
      await this.stop(found.blank())
      throw error
    }
  }

  async #goOn(found: FakeSandbox, spec: SandboxSpec, wait: Wait): Promise<Sandbox> {
    try {
      await obey(this.#options.onDress?.(spec), wait)
      if (found.fate) throw gone(found.hostId, found.fate)
      const { facts, memory } = found.restored as FakeCheckpoint
      if (!isDeepStrictEqual(facts, factsOf(spec))) {
        throw new DriverError('create_failed', 'layers or limits are others', {
          hint: 'give those',
        })
      }
      found.dress(spec)
      found.guest.load(memory)
      await found.guest.configure({ sandbox: spec.id, detachedMs: spec.detachedMs })
      return found.sandbox()
    } catch (error) {
      await this.stop(found.blank())
      throw error
    }
  }

  #pause(delayMs: number, wait: Wait): Promise<void> {
    const over = Promise.withResolvers<void>()
    const cancel = this.#clock.after(delayMs, () => over.resolve())
    return unlessAborted(wait.signal, over.promise).finally(cancel)
  }

  #living(sandbox: Sandbox): FakeSandbox {
    const found = this.machine.get(sandbox.hostId)
    if (!found || found.fate) throw gone(sandbox.hostId, found?.fate)
    return found
  }
}

function isOf(world: WorldAhead, { layers, limits, hostname }: SandboxSpec): boolean {
  return isDeepStrictEqual([world.layers, world.limits, world.hostname], [layers, limits, hostname])
}
