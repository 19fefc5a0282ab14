import { rm } from 'node:fs/promises'
import type { CgroupLeaf } from '../cgroup/cgroups.ts'
import type { Blank, CheckpointSource, Fate, Sandbox, Usage, WorldAhead } from '../driver.ts'
import type { ExecResult, Guest } from '../guest/guest.ts'
import type { GuestLost } from '../guest/guest-error.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import type { GvisorContext } from './context.ts'
import { type DiskFiles, removeDiskNames } from './disk-files.ts'
import { type EndEvidence, judgeFate, lastWords } from './fate.ts'
import type { HoldRequest } from './helper.ts'
import { type SandboxPaths, sandboxPaths } from './paths.ts'
import { type SandboxState, saveState } from './state.ts'

const SIGKILL = 9
const NO_USAGE = { cpuMs: 0, memoryBytes: 0, memoryPeakBytes: 0, diskBytes: 0 }
const NO_EVIDENCE = { oomKills: 0, limitHit: false, limitBytes: 0, peakBytes: 0 }

/**
 * One sandbox on the host, from before its launch until nothing is left of it.
 *
 * ```
 * made ─ launch ─▶ attached ─▶ owned ─▶ ending ─▶ gone
 *   │                  └▶ held ──▲
 *   └────────────────┴───────────┴── end(): the first cause counts
 * ```
 * `made`: a state file and a cgroup leaf, perhaps processes. `attached`: the agent answered. `held`: restored, and nothing in it runs.
 * `owned`: it has a spec. `ending`: everything in the leaf is killed, evidence is read, then all is removed.
 */
export class Instance {
  readonly hostId: string
  readonly paths: SandboxPaths
  readonly leaf: CgroupLeaf
  /** Resolves when it is certainly dead and its evidence is read. */
  readonly gone: Promise<Fate>
  /** What it was restored from. */
  readonly checkpoint: CheckpointSource | undefined
  /** What its world `main` was opened with, ahead of its owner. */
  opened: WorldAhead | undefined
  readonly #context: GvisorContext
  readonly #gone = Promise.withResolvers<Fate>()
  #state: SandboxState
  #guest: Guest | undefined
  #held = false
  #disk: DiskFiles | undefined
  #end: Promise<Fate> | undefined

  constructor(context: GvisorContext, state: SandboxState, checkpoint?: CheckpointSource) {
    this.#context = context
    this.#state = state
    this.checkpoint = checkpoint
    this.hostId = state.hostId
    this.paths = sandboxPaths(context.options.stateDirectory, state.hostId)
    this.leaf = context.cgroups.leaf(state.hostId)
    this.gone = this.#gone.promise
    context.instances.set(this.hostId, this)
  }

  get state(): SandboxState {
    return this.#state
  }

  get ending(): boolean {
    return this.#end !== undefined
  }

  get guest(): Guest {
    if (!this.#guest) throw new Error(`sandbox ${this.hostId} has no guest yet`)
    return this.#guest
  }

  /**
   * A sandbox dies of its memory as a whole. The kernel may choose a command alone where the machine doesn't let this daemon say what
   * to prefer; the rest is ended here, before anybody hears of the command.
   */
  readonly vetEnd = async ({ signal, exitCode, killed, timedOut }: ExecResult): Promise<void> => {
    const maybe = signal === SIGKILL || exitCode === 128 + SIGKILL
    if (!maybe || killed || timedOut || !(await this.killedForMemory())) return
    await this.end('lost')
    throw await this.guest.lost
  }

  async killedForMemory(): Promise<boolean> {
    return (await this.leaf.evidence().catch(() => NO_EVIDENCE)).oomKills > 0
  }

  /** From now on the loss of its guest is its end. */
  attach(guest: Guest): void {
    this.#guest = guest
    void guest.lost.then((lost) => {
      if (lost.cause !== 'detached') void this.end(causeOf(lost), lost.message)
    })
  }

  /** Nothing in it runs from now on. */
  async hold(): Promise<void> {
    this.#held = true
    await this.#context.helper.hold(this.#holding)
  }

  /** It goes on, where it was held. */
  async letGo(): Promise<void> {
    if (this.#held) await this.#context.helper.letGo(this.#holding)
    this.#held = false
  }

  get disk(): DiskFiles | undefined {
    return this.#disk
  }

  /** The files of its writable layers, where those are on the disk; closed by its end. */
  holdDisk(files: DiskFiles): void {
    this.#disk = files
  }

  async usage(): Promise<Usage> {
    const [usage, diskBytes] = await Promise.all([this.leaf.usage(), this.#disk?.heldBytes() ?? 0])
    if (!this.#state.owner?.spec.network) return { ...usage, diskBytes }
    const networkBytes = await this.#context.openNetworks.bytesOf(this.hostId)
    return { ...usage, diskBytes, networkBytes }
  }

  async save(change: Partial<SandboxState>): Promise<void> {
    this.#state = { ...this.#state, ...change }
    saveState(this.paths, this.#state)
  }

  blank(): Blank {
    return { hostId: this.hostId, gone: this.gone }
  }

  sandbox(): Sandbox {
    const { owner } = this.#state
    if (!owner) throw new Error(`sandbox ${this.hostId} has no owner`)
    const { spec } = owner
    const heldUpMs = () => this.leaf.heldUpMs()
    const memoryBytes = () => this.leaf.memoryBytes()
    const { hostId, guest, gone } = this
    return { id: spec.id, hostId, guest, spec, heldUpMs, memoryBytes, gone }
  }

  get #holding(): HoldRequest {
    const { sentryPid } = this.#state
    const { controlSocket } = this.paths
    return { controlSocket, sentryPid, deadlineMs: RUNTIME_LIMITS.holdMs }
  }

  /** Ends it, and resolves when nothing is left of it on the machine. Idempotent; never rejects. */
  end(cause: EndEvidence['cause'], why = ''): Promise<Fate> {
    this.#end ??= this.#finish(cause, why)
    return this.#end
  }

  async #finish(cause: EndEvidence['cause'], why: string): Promise<Fate> {
    const empty = await this.leaf.kill(RUNTIME_LIMITS.killMs).catch(() => false)
    const fate = await this.#judge(cause, why)
    this.#gone.resolve(fate)
    await this.#guest?.close()
    await this.#disk?.close()
    // What can't be removed now is found again by its leaf when the next daemon recovers.
    const removed = empty && (await this.leaf.remove(RUNTIME_LIMITS.removeMs).catch(() => false))
    if (empty) await this.#context.helper.reap(this.#state.sentryPid).catch(() => {})
    // Also of a start that failed in its middle.
    const apart = empty && (await this.#context.openNetworks.remove(this.hostId).catch(() => false))
    if (removed && apart) {
      // Of a start that failed in its middle.
      await removeDiskNames(this.#context.options.dataDirectory, this.hostId).catch(() => {})
      await rm(this.paths.directory, { recursive: true, force: true }).catch(() => {})
    }
    this.#context.instances.delete(this.hostId)
    return fate
  }

  async #judge(cause: EndEvidence['cause'], why: string): Promise<Fate> {
    const { panicLog, agentLog, runscLog } = this.paths
    const [memory, usage, words] = await Promise.all([
      this.leaf.evidence().catch(() => NO_EVIDENCE),
      this.usage().catch(() => NO_USAGE),
      lastWords([runscLog, panicLog, agentLog]),
    ])
    const { kind, detail } = judgeFate({ cause, memory, lastWords: words || why })
    return { kind, detail, usage }
  }
}

function causeOf(lost: GuestLost): EndEvidence['cause'] {
  return lost.cause === 'protocol' ? 'protocol' : 'lost'
}
