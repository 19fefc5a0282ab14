/**
 * What a node asks of one sandbox's guest agent: worlds, commands, files, tars. It knows no frames, so a
 * driver without any (the in-memory fake) implements it as well as the agent's client (`attach.ts`).
 *
 * ## Rules that hold for every call
 * - `signal` aborts the wait: the promise rejects with `signal.reason` at once and the agent is told to stop.
 *   `timeoutMs` bounds it: `GuestTimeout`. Defaults are in `limits.ts`.
 * - `GuestError` is the workload's: a missing file, a full disk, a world that won't end. The sandbox lives on.
 * - `GuestLost` is ours: the sandbox is dead or out of reach. Every call under way and every later one
 *   rejects with the same `GuestLost`, which `lost` resolves with.
 * - Paths and names are bytes. Text is taken as UTF-8; what comes from the guest stays bytes.
 * - Nothing that comes from a guest is trusted: what breaks a bound of `limits.ts` ends in
 *   `GuestLost` with cause `protocol`.
 * - Streams carry back-pressure both ways; memory per stream is bounded by the credit window.
 */
import type { GuestLost } from './guest-error.ts'
import type { GuestExecs } from './guest-execs.ts'
import type { GuestFiles, GuestTars } from './guest-files.ts'
import type { GuestPorts } from './guest-ports.ts'
import type { GuestRelay } from './guest-relay.ts'

export {
  EXEC_MODES,
  type ExecChunk,
  type ExecHandle,
  type ExecInput,
  type ExecListing,
  type ExecMode,
  type ExecOffsets,
  type ExecOutcome,
  type ExecResult,
  type ExecRunSpec,
  type ExecSpec,
  GUEST_EXEC_LIMITS,
  type GuestExecLimit,
  type GuestExecs,
  type OutputCount,
  type TerminalSize,
} from './guest-execs.ts'
export {
  type ContentStream,
  type DifferenceOptions,
  type FileContent,
  GUEST_FILE_KINDS,
  type GuestFileEntry,
  type GuestFileKind,
  type GuestFileStat,
  type GuestFiles,
  type GuestTars,
  type ReadRange,
  type WriteOptions,
} from './guest-files.ts'
export { type GuestPort, type GuestPorts, isReachedByLoopback } from './guest-ports.ts'
export type { GuestRelay } from './guest-relay.ts'

/** Text (UTF-8) or raw bytes; without a NUL byte. */
export type GuestText = string | Uint8Array

/**
 * Bytes on their way into a guest. An iterable is read only as fast as the guest takes it; what it yields is the guest's.
 */
export type GuestBytes = Uint8Array | AsyncIterable<Uint8Array>

export interface GuestWait {
  readonly signal?: AbortSignal
  /** How long to wait at most. Default: `GUEST_LIMITS.requestMs`, `transferMs` for content. */
  readonly timeoutMs?: number
}

export interface Guest {
  /** What the agent said of itself when this daemon attached. */
  readonly hello: GuestHello
  /** Resolves once when the guest is lost, also by `close()`. Never rejects. */
  readonly lost: Promise<GuestLost>

  readonly exec: GuestExecs
  readonly files: GuestFiles
  readonly tar: GuestTars
  readonly relay: GuestRelay
  readonly ports: GuestPorts

  /** Gives the agent its identity and its own deadlines. May be called again: the last one holds. */
  configure(options: GuestConfiguration, wait?: GuestWait): Promise<void>

  /**
   * The agent stands still until `thaw`, so that its memory can be saved: no time of its own runs out, nothing else is answered.
   * Calls under way go on afterwards. Fails with `busy` while a world is being opened or ended. Idempotent.
   */
  freeze(wait?: GuestWait): Promise<void>

  /** It goes on; with an identity as another sandbox, whose worlds are told so. */
  thaw(identity?: GuestIdentity, wait?: GuestWait): Promise<void>

  /**
   * Builds a world ahead of `openWorld`, and waits until it is ready to be opened. The agent begins with `main` by itself.
   * Fails with `exists` when it was opened before.
   */
  prepareWorld(world: string, wait?: GuestWait): Promise<{ elapsedUs: number }>

  /** Opens a prepared world, or prepares one first. Fails with `exists` when it was opened before. */
  openWorld(spec: WorldSpec, wait?: GuestWait): Promise<{ elapsedUs: number }>

  /**
   * Kills everything in a world and waits until it is certainly empty; its files stay. Idempotent.
   * `timeoutMs` is given to the agent: `not_empty` when processes are left by then.
   * `by` says who ended it first: an earlier request, or the episode by killing its own init.
   */
  endWorld(world: string, wait?: GuestWait): Promise<{ elapsedUs: number; by: WorldEnder }>

  /**
   * News of the worlds until the consumer stops (`break`) or `signal` aborts; there is no deadline.
   * It starts with the call. Throws the `GuestLost` when the guest is lost.
   */
  watch(wait?: Pick<GuestWait, 'signal'>): AsyncIterable<GuestNews>

  stats(wait?: GuestWait): Promise<GuestStats>

  /** Processes of a world, at most 512. Fails with `world_unknown`. */
  processes(world: string, wait?: GuestWait): Promise<readonly GuestProcess[]>

  /**
   * Lets go of the guest: descriptors are closed, calls under way reject with `GuestLost` cause
   * `detached`. The sandbox and its commands live on. Idempotent.
   */
  close(): Promise<void>
}

export interface GuestHello {
  /** Version of the wire protocol: 1. */
  readonly protocol: number
  /** Version of the agent. */
  readonly agent: string
  /** 16 bytes drawn once when the agent started: another value is another agent. */
  readonly boot: Uint8Array
  /** The id given by `configure`; empty while blank. */
  readonly sandbox: string
  readonly uptimeMs: number
  /** It waits for `thaw`: a copy, or a daemon died while it saved the sandbox. */
  readonly frozen?: boolean
  readonly worlds: readonly { readonly world: string; readonly state: WorldState }[]
  readonly execs: readonly {
    readonly exec: string
    readonly world: string
    readonly running: boolean
  }[]
}

export const WORLD_STATES = ['prepared', 'open', 'ended'] as const
export type WorldState = (typeof WORLD_STATES)[number]

/** Who ended a world: a request, or the episode itself by killing the world's init. */
export const WORLD_ENDERS = ['request', 'episode'] as const
export type WorldEnder = (typeof WORLD_ENDERS)[number]

export interface GuestConfiguration {
  /** Kept by the agent and said in `hello`, so that a later daemon knows whose sandbox it found. */
  readonly sandbox: string
  /** The agent ends the sandbox after this long without a daemon. */
  readonly detachedMs: number
  /** The agent ends the sandbox this long after the call, whatever happens. Default: never. */
  readonly lifetimeMs?: number
}

/** Who a copy is, as it is told. */
export interface GuestIdentity extends GuestConfiguration {
  /** Of each of its worlds. */
  readonly hostname: string
  /** Of the relay: connections to it wait for `relay.listen`. Without it nothing listens, whatever did before. */
  readonly relayPort?: number
}

/** A world to be opened. Sizes in bytes; every limit is set by the caller. */
export interface WorldSpec {
  /** `[a-z]{1,16}` */
  readonly world: string
  /** Directories in the agent's own root, top first, where the layers are mounted. */
  readonly layers: readonly string[]
  /** An ended world whose files are seen below this world's own. */
  readonly below?: string
  /** Its writable layer is what the host mounted for this world, with a size of its own. Default: one in memory is made. */
  readonly disk?: boolean
  readonly upperBytes: number
  readonly upperInodes: number
  readonly shmBytes: number
  readonly pidsMax: number
  /** Of them, those that commands of one user started (RLIMIT_NPROC, and a group of its own). Default: all. */
  readonly userPidsMax?: number
  readonly nofileMax: number
  /** Largest size of one file (RLIMIT_FSIZE). Default: none. */
  readonly fileBytesMax?: number
  readonly hostname: string
  /** What /proc/meminfo shows as total. Default: the truth. */
  readonly memoryTotalBytes?: number
  /** How many processors the world sees. Default: all. */
  readonly cpus?: number
  /** Content of /etc/hosts. Default: the image's. */
  readonly hosts?: string
  /** Content of /etc/resolv.conf. Default: the image's. */
  readonly nameServers?: string
  /** Device nodes of the agent's own `/dev` that it shows too, by their names below it. Default: none. */
  readonly devices?: readonly string[]
  /** What the host mounted below `/given` that it shows at the same path, read-only. Default: nothing. */
  readonly given?: readonly string[]
  /** Its /etc/machine-id and /dev/sandlot-seed are those that the host mounted for the sandbox. Default: the image's, and an empty one. */
  readonly identity?: boolean
}

export const GUEST_FLAGS = ['pids', 'processesPerUser', 'disk', 'output', 'fileSize'] as const
export type GuestFlag = (typeof GUEST_FLAGS)[number]

/** Something a world wants known; flags are said once per world and exec. */
export type GuestNews =
  | { readonly kind: 'world_ended'; readonly world: string; readonly by: 'episode' }
  | {
      readonly kind: 'flag'
      readonly world: string
      /** A limit that was met and survived: processes, also of one user, space of a file system, kept output, the size of one file. */
      readonly flag: GuestFlag
      readonly exec?: string
    }

export interface GuestStats {
  readonly worlds: readonly WorldStats[]
  /** Bytes of output the agent holds in all its rings. */
  readonly rings: number
}

export interface WorldStats {
  readonly world: string
  readonly processes: number
  readonly upperUsedBytes: number
  readonly upperTotalBytes: number
  readonly upperInodesUsed: number
  readonly upperInodesTotal: number
  /** Most processes at one time. */
  readonly pidsPeak: number
  /** How often a new process was refused for the limit. */
  readonly pidsRefused: number
  /** Of those, for the limit of one user. Absent where the agent doesn't tell. */
  readonly userPidsRefused?: number
}

export interface GuestProcess {
  readonly pid: number
  readonly parent: number
  /** The exec that started it, where it still is in that exec's cgroup. */
  readonly exec?: string
  readonly command: Uint8Array
}
