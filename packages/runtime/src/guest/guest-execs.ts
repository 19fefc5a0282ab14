import type { GuestBytes, GuestText, GuestWait } from './guest.ts'

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

  /**
   * Changes the size of a command's terminal; what runs in its foreground is told by SIGWINCH. One that has ended stays as it is.
   * `exec_unknown`; `invalid` for one without a terminal; `unsupported` by an agent from before there were any.
   */
  resize(exec: string, size: TerminalSize, wait?: GuestWait): Promise<void>

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
  /**
   * It runs at a terminal of this size: a session of its own that the terminal controls. All its output is `stdout`; what is typed
   * is written to `stdin` by whoever reads it, also after an attach, and `stdin.end()` means nothing. What the command
   * left runs on when it ends, without a SIGHUP, and nobody reads the terminal any more. With `stdin: true` and mode `stream`;
   * `unsupported` by an agent from before there were any.
   */
  readonly terminal?: TerminalSize
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
  /** Forgotten by the agent as soon as a reader had its result. Default: it is kept. */
  readonly forget?: boolean
}

/** In characters, 1 … 4,096 each. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

export interface ExecRunSpec extends Omit<ExecSpec, 'mode' | 'stdin' | 'forget' | 'terminal'> {
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

/** What a world can tell of its limits. */
export const GUEST_EXEC_LIMITS = ['pids', 'processesPerUser', 'disk', 'fileSize'] as const
export type GuestExecLimit = (typeof GUEST_EXEC_LIMITS)[number]

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
  /** Limits of its world that were met while it ran. */
  readonly limits: readonly GuestExecLimit[]
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
  /** The arguments with a NUL between two, as far as they are shown. */
  readonly command: Uint8Array
  /** There is more of it. */
  readonly cut: boolean
  /** How long ago it started. */
  readonly startedMs: number
  readonly processes: number
  /** It runs at a terminal, and has printed so much. */
  readonly terminal?: { readonly printedBytes: number }
}
