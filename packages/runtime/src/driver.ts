/**
 * What the rest of Sandlot asks of one machine's sandboxes.
 *
 * ## Terms
 * - A **host id** names a started sandbox on this machine (cgroup leaf, FIFOs, `--root`); it exists before the sandbox id does.
 * - A **blank** is a started sandbox that belongs to nobody and costs no owner anything. It has no image yet; or it was restored from a
 *   checkpoint and is held: neither its agent nor any process in it runs, and it uses no processor, until it is checked out.
 * - **Checkout** gives a blank its owner: identity, and layers and limits unless a checkpoint has fixed them. From then on it is a sandbox,
 *   never reused after stop.
 * - A **world** is the namespaces and overlay root in which commands live. `main` is opened by checkout; `grade` is opened over
 *   main's files when main is certainly empty.
 * - A **checkpoint** is a directory that holds a sandbox's memory and files, and what a machine needs to restore them. The sandbox is
 *   frozen while it is taken: its agent stands still, its processes are held up.
 * - A sandbox's **fate** is how it ended, recorded once. It outranks what any worker says about the same attempt.
 *
 * ## A life
 * ```
 * createBlank ─▶ blank ─ checkout ─▶ running ─ stop ─▶ gone
 *                  └──── discard ───────┴─ dies alone ─▶ gone (fate says why)
 * create = a cold start: spec mounts instead of hot-mounted layers, then the same `running`
 * restore = createBlank from a checkpoint of a running one, then checkout: its processes go on, as a sandbox of their own
 * ```
 * A pool calls `createBlank` ahead of need; the node calls `checkout` when an attempt is admitted, drives the commands through
 * `guest`, and calls `stop` when the attempt is over. After a daemon's death the next one calls `recover` once, before anything
 * else: each sandbox found is adopted (its agent answers) or stopped; whether its owner still wants it is the caller's to decide.
 *
 * ## Rules for implementers
 * Every call takes a signal and has a deadline. An aborted or failed call leaves nothing behind. `stop` is idempotent and always
 * ends in a fate. No call names a path that a client chose. The conformance suite (`conformance/driver.ts`) is the judge.
 */
import type { Fate, Usage } from './fate.ts'
import type { MachineGpus } from './gpu/machine-gpus.ts'
import type { Guest } from './guest/guest.ts'
import type { DiskSpace, MemorySpace } from './machine-space.ts'
import type { Reconciled, ReconcileOptions } from './reconciled.ts'
import type { Recovery } from './recovery.ts'
import type { RefusedPackets } from './refused-packets.ts'

export { DRIVER_ERROR_CODES, DriverError, type DriverErrorCode } from './driver-error.ts'
export { FATES, type Fate, type FateKind, type Usage } from './fate.ts'
export type { DiskSpace, MemorySpace } from './machine-space.ts'
export type { Reconciled, ReconcileOptions } from './reconciled.ts'
export type { EndedSandbox, Recovery } from './recovery.ts'
export type { RefusedPackets } from './refused-packets.ts'

/** How a driver differs from another; the conformance suite tests a missing capability to fail with `unsupported`. */
export interface DriverCapabilities {
  /** Layers can be mounted into a running blank; without it `checkout` is refused and only `create` works. */
  readonly hotMount: boolean
  readonly memorySnapshot: boolean
  /** Limits of memory and processor time are enforced by the machine. */
  readonly limits: boolean
}

/** One read-only layer: an EROFS image on this machine. */
export interface Layer {
  /** `sha256:…` of the image file. */
  readonly digest: string
  /** Absolute path of the image file on this machine. */
  readonly path: string
}

/** Limits in force for a sandbox; every field is set by the caller, no defaults below this line. */
export interface SandboxLimits {
  /**
   * Of processes, and of writable files that are held in memory, and what the processes see as the machine's memory. What the runtime
   * itself needs comes on top.
   */
  readonly memoryBytes: number
  /** Processors, may be a fraction; the quota of the host cgroup. */
  readonly cpus: number
  /** Processes inside, over all users. */
  readonly pidsMax: number
  /** Of them, those that one user started. Default: all. */
  readonly userPidsMax?: number
  /**
   * Size of the main world's writable layer; a grader's own layer is sized from it. What doesn't fit into the memory limit is on the
   * machine's disk (`diskMediumOf`): there its pages are the kernel's cache, which the memory limit never has to hold.
   */
  readonly diskBytes: number
  /** Open files of one process. */
  readonly nofileMax: number
  /** The largest that one file may become. Default: as large as its file system. */
  readonly fileBytesMax?: number
}

/** What a checkout or a cold start is given. */
export interface SandboxSpec {
  /** `sb_` + 20 characters. */
  readonly id: string
  /** Bottom first. */
  readonly layers: readonly Layer[]
  readonly limits: SandboxLimits
  readonly hostname: string
  /** The agent ends the sandbox after this long without a daemon. Milliseconds. */
  readonly detachedMs: number
  /** The agent ends the sandbox this long after checkout, whatever happens. Milliseconds. */
  readonly lifetimeMs?: number
  /**
   * The agent listens here for connections to the relay before the world opens; those to a restored one wait for `relay.listen`. Default:
   * nowhere.
   */
  readonly relayPort?: number
  /**
   * An interface of its own, by which it reaches public addresses. Only `create` makes such a sandbox, and its memory can't be saved.
   * Default: none.
   */
  readonly network?: 'open'
  /**
   * GPUs of the machine by their names, as `gpus` tells them; nobody else has them meanwhile, which is the caller's to see to. Only
   * `create` gives any, and the memory of such a sandbox can't be saved. Default: none.
   */
  readonly gpus?: readonly string[]
  /** Its memory can be saved. Only `create` and `restore` make such a sandbox: hot-mounted layers are lost to a checkpoint. */
  readonly checkpointable?: boolean
  /** Processors that it is given when all want more than there are: its weight beside other sandboxes. Default: one. */
  readonly cpuShare?: number
}

/** Where a blank is restored from. */
export interface CheckpointSource {
  readonly directory: string
  /** What it was taken with; any other is refused. Layers bottom first. */
  readonly layers: readonly Layer[]
  readonly limits: SandboxLimits
}

/** What a machine must have to restore a checkpoint; also in the checkpoint's own directory. */
export interface CheckpointFacts {
  /** Counts up when checkpoints of before can't be restored any more. */
  readonly format: number
  /** Version of the runtime; another one can't read it. */
  readonly runtime: string
  /** Of the processor that it was taken on, separated by commas; the restoring one has them all. */
  readonly cpuFeatures: string
  /** The guest agent, which is part of the memory. */
  readonly agent: string
  /** Digests, bottom first. */
  readonly layers: readonly string[]
  readonly limits: SandboxLimits
  /** Of all its files. */
  readonly sizeBytes: number
}

export interface CheckpointOptions extends Wait {
  /** False: the sandbox is stopped when its checkpoint is whole, and lives on when that fails. */
  readonly leaveRunning: boolean
}

/** A second world, opened when `main` has certainly ended, or beside it. */
export interface GradeWorldSpec {
  readonly world: string
  /** What it shows below its own files: those that `main` left over the image, the image alone, or other layers, bottom first. */
  readonly shows: 'main' | 'image' | readonly Layer[]
  /** `main` lives on: refused where its files are shown. Default: it is ended. */
  readonly beside?: boolean
}

/** A started sandbox without an owner. */
export interface Blank {
  readonly hostId: string
  /** Resolves when it dies while still blank. Never rejects. */
  readonly gone: Promise<Fate>
}

/** A sandbox with an owner. */
export interface Sandbox {
  readonly id: string
  readonly hostId: string
  readonly guest: Guest
  readonly spec: SandboxSpec
  /** For how long its processor limit has held its threads up, all together; 0 where the machine doesn't say. Milliseconds. */
  heldUpMs(): Promise<number>
  /** What it uses of the machine's memory now, without what the kernel can drop; 0 where the machine doesn't say. Cheap. */
  memoryBytes(): Promise<number>
  /** Resolves once, however it ends. Never rejects. */
  readonly gone: Promise<Fate>
}

/** One thing the machine has or lacks. */
export interface ProbeFinding {
  readonly name: string
  readonly ok: boolean
  /** A version or what was found. */
  readonly found: string
  /** The command that mends it, when not ok. */
  readonly mend?: string
  /** False: the driver works without it, worse. */
  readonly required: boolean
}

export interface Wait {
  readonly signal?: AbortSignal
}

export interface BlankOptions extends Wait {
  /** Those that it is likely to be given: mounted already, they cost the checkout nothing. They bind to nothing. Default: none. */
  readonly layers?: readonly Layer[]
  /** Its world `main` is open too: only a checkout of this very sort takes it, and gives it no more than a name. Default: it isn't. */
  readonly world?: WorldAhead
  /** It is restored from there. Default: it is started, without an image. */
  readonly checkpoint?: CheckpointSource
}

/** What a world that is opened ahead is made of. */
export type WorldAhead = Pick<SandboxSpec, 'layers' | 'limits' | 'hostname'>

export interface RuntimeDriver extends AsyncDisposable {
  readonly name: 'gvisor' | 'fake'
  readonly capabilities: DriverCapabilities

  /** Looks at the machine; starts nothing that outlives the call. */
  probe(wait?: Wait): Promise<readonly ProbeFinding[]>

  /** Finds sandboxes that an earlier daemon left, reaps blanks and what doesn't answer, adopts the rest. Called once, first. */
  recover(wait?: Wait): Promise<Recovery>

  /** Whether a checkpoint could be restored here, from what it says of itself. Throws `snapshot_incompatible`, which names the difference. */
  checkCheckpoint(checkpoint: CheckpointSource): Promise<void>

  /**
   * Starts a sandbox that has no image yet, or restores one from a checkpoint and holds it; while that goes on its processes may run for
   * a moment, with the machine id and seed that it keeps. Fails with `create_failed`; from a checkpoint also with `snapshot_incompatible`, which names the difference and is found
   * before anything is started, or with `unsupported` without the capability `memorySnapshot`.
   */
  createBlank(options?: BlankOptions): Promise<Blank>

  /**
   * Gives a blank its owner. One without an image is dressed, and its world `main` opened; a restored one goes on, under its new id and
   * host name and with new clocks, and can be saved in turn. The blank is used up, also by a failure (it is stopped then).
   * Fails with `create_failed`, also where a restored one does not answer or `spec` is not of what its checkpoint or its world is; or
   * with `unsupported` where it has no image and the capability `hotMount` is missing, or has no place for the files of `spec`: those of a
   * disk beyond the memory only a blank has whose world was opened for it.
   */
  checkout(blank: Blank, spec: SandboxSpec, wait?: Wait): Promise<Sandbox>

  /** A cold start: the same result as createBlank + checkout, with the layers as mounts of the sandbox's own specification. */
  create(spec: SandboxSpec, wait?: Wait): Promise<Sandbox>

  /**
   * Ends `main` for certain, then opens another world. Files of `main` can still be read by file requests; nothing runs
   * there any more. Fails with `world_not_empty` when it won't end. Other layers need the capability `hotMount`, or fail with `unsupported`.
   */
  openGradeWorld(sandbox: Sandbox, grade: GradeWorldSpec, wait?: Wait): Promise<void>

  /**
   * Saves a sandbox's memory and files into a directory that doesn't exist yet. It is there whole or not at all; what it was taken
   * of lives on after a failure, also of an abort, which waits until it does. That it can be restored is certain only after one restore. Fails with `unsupported` without the
   * capability `memorySnapshot` or when the sandbox isn't `checkpointable`, with `no_space`, with `checkpoint_failed`.
   */
  checkpoint(
    sandbox: Sandbox,
    directory: string,
    options: CheckpointOptions,
  ): Promise<CheckpointFacts>

  /**
   * The same result as `createBlank` from a checkpoint and `checkout`, as often as wanted. Each is one of its own for all that runs in
   * it, but under the id of what was saved it is that sandbox: it keeps its machine id and seed.
   */
  restore(spec: SandboxSpec, directory: string, wait?: Wait): Promise<Sandbox>

  /**
   * Looks once whether what this driver believes is what the machine has, and puts right what isn't. Cheap; to be called now and then
   * after `recover`. Fails only by its signal: what can't be put right is told, and tried again by the next call.
   */
  reconcile(options: ReconcileOptions): Promise<Reconciled>

  /** What the machine has of GPUs, read anew; a driver that gives none has none. */
  gpus(): Promise<MachineGpus>

  /** What commands of a sandbox with these GPUs need in their environment, below what anybody sets. */
  gpuEnvironment(names: readonly string[]): Promise<Readonly<Record<string, string>>>

  /** What of sandboxes with an interface was dropped since it was asked before: each target once, while packets to it keep coming. */
  refusedPackets(): Promise<readonly RefusedPackets[]>

  usage(sandbox: Sandbox): Promise<Usage>

  /** What the machine has for layers that are not in memory. Fails with `unsupported` where it has no place for any. */
  diskSpace(): Promise<DiskSpace>

  /** What the machine has of memory for sandboxes, in all and now. Cheap. */
  memorySpace(): Promise<MemorySpace>

  /** Ends a sandbox or a blank with all its processes, and removes what it left on the machine. Idempotent. */
  stop(sandbox: Sandbox | Blank, wait?: Wait): Promise<Fate>

  /** Stops everything this driver started or recovered. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>
}
