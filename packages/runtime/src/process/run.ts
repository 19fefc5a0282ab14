import { execa } from 'execa'

export interface RunOptions {
  /** Killed with SIGKILL when it runs for longer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  readonly cwd?: string
  /** What it reads on its standard input. Default: nothing. */
  readonly input?: string
  /** The whole environment. Default: the system's usual PATH alone. */
  readonly env?: Readonly<Record<string, string>>
  /** Kept of each output; the rest is cut. Default 1 MiB. */
  readonly outputBytesMax?: number
}

/** How a program ended. A failure to start it is `exitCode` undefined with a `problem`. */
export interface RunOutcome {
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
  readonly timedOut: boolean
  /** Why it did not exit by itself with 0, in one line. */
  readonly problem?: string
}

const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Runs a program to its end: an array of arguments, never a shell; with a deadline and bounded output. */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions,
): Promise<RunOutcome> {
  const result = await execa(program, [...args], {
    reject: false,
    ...(options.input === undefined ? { stdin: 'ignore' } : { input: options.input }),
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: options.outputBytesMax ?? 2 ** 20,
    extendEnv: false,
    env: options.env ?? { PATH: SYSTEM_PATH },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.signal === undefined ? {} : { cancelSignal: options.signal }),
  })
  options.signal?.throwIfAborted()
  return {
    exitCode: result.exitCode,
    stdout: result.stdout,
    stderr: result.stderr,
    timedOut: result.timedOut,
    ...(result.failed ? { problem: result.shortMessage ?? 'failed' } : {}),
  }
}
