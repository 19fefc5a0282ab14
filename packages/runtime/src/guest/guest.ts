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

/** Text (UTF-8) or raw bytes; without a NUL byte. */
export type GuestText = string | Uint8Array

/** Bytes on their way into a guest. An iterable is read only as fast as the guest takes it. */
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

  /** Gives the agent its identity and its own deadlines. May be called again: the last one holds. */
  configure(options: GuestConfiguration, wait?: GuestWait): Promise<void>

  /** Builds a world ahead of `openWorld`. Fails with `exists` when it is prepared or open already. */
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

/** A world to be opened. Sizes in bytes; every limit is set by the caller. */
export interface WorldSpec {
  /** `[a-z]{1,16}` */
  readonly world: string
  /** Directories in the agent's own root, top first, where the layers are mounted. */
  readonly layers: readonly string[]
  /** An ended world whose files are seen below this world's own. */
  readonly below?: string
  readonly upperBytes: number
  readonly upperInodes: number
  readonly shmBytes: number
  readonly pidsMax: number
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
}

/** Something a world wants known; flags are said once per world and exec. */
export type GuestNews =
  | { readonly kind: 'world_ended'; readonly world: string; readonly by: 'episode' }
  | {
      readonly kind: 'flag'
      readonly world: string
      /** A limit that was met and survived: processes, or space of the writable layer. */
      readonly flag: 'pids' | 'disk'
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
}

export interface GuestProcess {
  readonly pid: number
  readonly parent: number
  /** The exec that started it, where it still is in that exec's cgroup. */
  readonly exec?: string
  readonly command: Uint8Array
}

// ---- commands

/** Commands of a sandbox. An exec has an id chosen by the caller and lives in the agent, also without a reader. */
export interface GuestExecs {
  /**
   * Starts a command and attaches to it. The handle is there at once; a start that fails rejects both
   * `started` and `result`: `not_found` (command or cwd), `permission`, `limit` (pids), `invalid` (user),
   * `exec_exists`, `world_not_open`. Aborting `signal` detaches; it does not kill.
   */
  start(spec: ExecSpec, wait?: Pick<GuestWait, 'signal'>): ExecHandle

  /**
   * Runs a command to its end with output kept as head and tail (mode `buffered`), then forgets it in
   * the agent unless `keep`. Aborting `signal` or reaching `wait.timeoutMs` kills what it started.
   * `wait.timeoutMs` is a backstop of the host: default `spec.timeoutMs` + `GUEST_LIMITS.execGraceMs`, without
   * `spec.timeoutMs` none. A command that fails or is timed out by `spec.timeoutMs` is a result.
   */
  run(spec: ExecRunSpec, wait?: GuestWait): Promise<ExecOutcome>

  /**
   * Attaches to a command that runs or ran, from offsets into its output. What the agent no longer holds
   * is skipped: the next chunk's offset is higher. `exec_unknown` when it was forgotten.
   */
  attach(exec: string, from: ExecOffsets, wait?: Pick<GuestWait, 'signal'>): ExecHandle

  /**
   * Signal 9 ends all that the command started, also what left its session; another signal goes to
   * every process it started. `processes` says how many. `exec_unknown`.
   */
  kill(exec: string, signal: number, wait?: GuestWait): Promise<{ processes: number }>

  /** The latest 256. */
  list(wait?: GuestWait): Promise<readonly ExecListing[]>

  /** Drops the output and the result of an ended exec. `exec_unknown`; `limit` while it runs. */
  forget(exec: string, wait?: GuestWait): Promise<void>
}

export const EXEC_MODES = ['stream', 'buffered'] as const
/**
 * `buffered` never blocks the command: the first and the last bytes are kept and sent when it ends.
 * `stream` blocks it while a reader is attached and doesn't read; while none is, the newest bytes are kept.
 */
export type ExecMode = (typeof EXEC_MODES)[number]

export interface ExecSpec {
  readonly world: string
  /** `[A-Za-z0-9_-]{1,64}`, new in this sandbox. */
  readonly exec: string
  /** argv[0] without a slash is searched in PATH of `env`. */
  readonly argv: readonly GuestText[]
  readonly env: readonly (readonly [GuestText, GuestText])[]
  readonly cwd: GuestText
  /** A name, or `uid[:gid]`. Default `0:0`. */
  readonly user?: string
  /** Whether `stdin` of the handle can be written. False: the command reads end of file at once. */
  readonly stdin: boolean
  readonly mode: ExecMode
  /** At this deadline everything the command started is killed and the result says `timedOut`. Default: none. */
  readonly timeoutMs?: number
  /** Mode `buffered`: what is kept of each channel. Defaults 512 KiB each. */
  readonly headBytes?: number
  readonly tailBytes?: number
  /** Mode `stream`: what is kept of each channel while nobody reads. Default 256 KiB. */
  readonly ringBytes?: number
}

export interface ExecRunSpec extends Omit<ExecSpec, 'mode' | 'stdin'> {
  /** Written to the command's stdin, then closed. Default: none. */
  readonly stdin?: GuestBytes
  /** Keep the ended exec in the agent, to be attached to again. Default false. */
  readonly keep?: boolean
}

/** Position in each output channel, counted from the command's first byte. */
export interface ExecOffsets {
  readonly stdoutFrom: number
  readonly stderrFrom: number
}

/**
 * A reader of one exec. `output` has to be read in mode `stream`: a reader that doesn't stops the command (and
 * nothing else). Letting go of the handle is `detach()`, aborting the signal, or the end of the exec.
 */
export interface ExecHandle {
  readonly exec: string
  /** The command runs. Also resolves for an attached exec that has ended. */
  readonly started: Promise<{ pid: number }>
  readonly stdin: ExecInput
  /** Both channels in the order of arrival; ends with the exec, then `result` settles. Read it once. */
  readonly output: AsyncIterable<ExecChunk>
  readonly result: Promise<ExecResult>
  /** Stops reading; the command goes on. Output read so far stays, `result` rejects with `cancelled`. */
  detach(): void
}

export interface ExecInput {
  /** Resolves true when the guest took the bytes, false when the command reads no more of them. */
  write(bytes: Uint8Array): Promise<boolean>
  /** End of file after what was written. Idempotent. */
  end(): void
}

export interface ExecChunk {
  readonly channel: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
  /** Where `bytes` begin in the channel. A gap to the chunk before is what was dropped. */
  readonly offset: number
}

/** How a command ended: it exited (`exitCode`) or was killed by a signal (`signal`), exactly one of them. */
export interface ExecResult {
  readonly exitCode?: number
  readonly signal?: number
  readonly timedOut: boolean
  /** Ended by `exec.kill` or the deadline. */
  readonly killed: boolean
  readonly durationUs: number
  /** Output of the command, whether read or not. */
  readonly counts: { readonly stdout: OutputCount; readonly stderr: OutputCount }
  /** Processes it started that still run. */
  readonly left: number
}

export interface OutputCount {
  readonly totalBytes: number
  /** Not kept: the middle in mode `buffered`, the oldest in mode `stream`. */
  readonly droppedBytes: number
}

/** Result of `run`: head and tail joined; what lies between is counted in `counts`, at `headBytes`. */
export interface ExecOutcome extends ExecResult {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
}

export interface ExecListing {
  readonly exec: string
  readonly world: string
  readonly running: boolean
  readonly pid: number
  readonly argv0: Uint8Array
  /** How long ago it started. */
  readonly startedMs: number
  readonly processes: number
}

// ---- files

export const GUEST_FILE_KINDS = [
  'file',
  'directory',
  'symlink',
  'fifo',
  'socket',
  'device',
] as const
export type GuestFileKind = (typeof GUEST_FILE_KINDS)[number]

/**
 * Files of a world, as its root sees them: a symlink resolves as the episode sees it and can't leave the world.
 * All fail with `not_found`, `not_directory`, `permission`, `world_not_open`, `world_unknown` or `io` where that fits.
 */
export interface GuestFiles {
  /** A regular file; `is_directory` or `not_file` for anything else, and never blocks on a FIFO. */
  read(world: string, path: GuestText, range?: ReadRange, wait?: GuestWait): Promise<FileContent>

  /** `no_space`, `exists` (with `exclusive`), `is_directory`. What was written before a failure stays. */
  write(
    world: string,
    path: GuestText,
    content: GuestBytes,
    options?: WriteOptions,
    wait?: GuestWait,
  ): Promise<{ sizeBytes: number }>

  stat(
    world: string,
    path: GuestText,
    options?: { readonly follow?: boolean },
    wait?: GuestWait,
  ): Promise<GuestFileStat>

  /** Entries of a directory in its own order, without `.` and `..`. */
  list(world: string, path: GuestText, wait?: GuestWait): AsyncIterable<GuestFileEntry>

  makeDirectory(
    world: string,
    path: GuestText,
    options?: { readonly parents?: boolean; readonly mode?: number },
    wait?: GuestWait,
  ): Promise<void>

  /** `not_empty` for a directory without `recursive`; with `force` a missing path is no failure. */
  remove(
    world: string,
    path: GuestText,
    options?: { readonly recursive?: boolean; readonly force?: boolean },
    wait?: GuestWait,
  ): Promise<void>

  rename(world: string, from: GuestText, to: GuestText, wait?: GuestWait): Promise<void>

  chmod(world: string, path: GuestText, mode: number, wait?: GuestWait): Promise<void>
}

export interface ReadRange {
  readonly offset?: number
  readonly length?: number
}

export interface WriteOptions {
  /** Permission bits of a new file. Default 0o644. */
  readonly mode?: number
  /** Make missing directories. Default false. */
  readonly parents?: boolean
  readonly append?: boolean
  /** Fail with `exists` when there is something already. */
  readonly exclusive?: boolean
  /** Owner of a new file. Default 0. */
  readonly uid?: number
  readonly gid?: number
}

export interface GuestFileStat {
  readonly kind: GuestFileKind
  readonly sizeBytes: number
  /** Permission bits. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly mtimeMs: number
  /** Where a symlink points. */
  readonly target?: Uint8Array
}

export interface GuestFileEntry {
  readonly name: Uint8Array
  readonly kind: GuestFileKind
  readonly sizeBytes: number
  readonly mode: number
  readonly mtimeMs: number
}

/** Content that is read once. Whoever doesn't read it to its end calls `cancel()` (a `break` does). */
export interface ContentStream<Result> extends AsyncIterable<Uint8Array> {
  /** Settles after the last byte: what the agent counted, or why it stopped. */
  readonly result: Promise<Result>
  /** Stops the transfer. Idempotent. */
  cancel(): void
}

export interface FileContent {
  /** The file when it was opened. */
  readonly stat: GuestFileStat
  readonly content: ContentStream<{ sizeBytes: number }>
}

// ---- tars

export interface GuestTars {
  /** Unpacks a tar below `path`, which is made. `invalid` for absolute names, `..`, devices, links that leave it. */
  in(
    world: string,
    path: GuestText,
    tar: GuestBytes,
    options?: { readonly uid?: number; readonly gid?: number },
    wait?: GuestWait,
  ): Promise<{ entries: number }>

  /** A pax tar of a directory's content, or of one file. */
  out(world: string, path: GuestText, wait?: GuestWait): ContentStream<{ entries: number }>
}
