import { execa } from 'execa'

export interface RunStreamingOptions<T> {
  /** Killed with SIGKILL when it runs for longer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Ends it before its time; false where it could not. Default: SIGKILL to the program itself. */
  readonly kill?: (pid: number) => boolean
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Takes the standard output as it comes. When it fails, the program is killed. */
  readonly consume: (stdout: AsyncIterable<Uint8Array>) => Promise<T>
  /** One line of standard error, without its newline, cut to `lineBytesMax`. */
  readonly onStderrLine: (line: string) => void
  readonly lineBytesMax: number
}

/** How a program ended, and what became of its output. Both can fail; which one is the cause, the caller knows. */
export interface StreamingOutcome<T> {
  readonly exitCode: number | undefined
  readonly timedOut: boolean
  /** Why it did not exit by itself with 0, in one line. */
  readonly problem?: string
  readonly consumed: { readonly value: T } | { readonly error: unknown }
}

/** Runs a program whose output is too large to keep. Rejects only when aborted. */
export async function runStreaming<T>(
  program: string,
  args: readonly string[],
  options: RunStreamingOptions<T>,
): Promise<StreamingOutcome<T>> {
  const { signal } = options
  signal.throwIfAborted()
  const child = execa(program, [...args], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
    extendEnv: false,
    env: options.env,
    cwd: options.cwd,
  })
  let killed = false
  const kill = () => {
    const { pid, exitCode, signalCode } = child
    if (pid === undefined || exitCode !== null || signalCode !== null) return
    killed = true
    if (!options.kill?.(pid)) child.kill('SIGKILL')
  }
  let timedOut = false
  const late = setTimeout(() => {
    timedOut = true
    kill()
  }, options.timeoutMs)
  signal.addEventListener('abort', kill, { once: true })
  const consumed = options.consume(child.stdout).then(
    (value) => ({ value }),
    (error: unknown) => {
      // A program that closed its output is ending by itself, and its exit code says more than a kill would.
      if (!child.stdout.readableEnded) kill()
      child.stdout.resume()
      return { error }
    },
  )
  // What it says of being killed is nobody's news.
  const onLine = (line: string) => killed || options.onStderrLine(line)
  const lines = eachLine(child.stderr, options.lineBytesMax, onLine)
  const [result, outcome] = await Promise.all([child, consumed, lines])
  clearTimeout(late)
  signal.removeEventListener('abort', kill)
  signal.throwIfAborted()
  return {
    exitCode: result.exitCode,
    timedOut,
    ...(result.failed ? { problem: result.shortMessage ?? 'failed' } : {}),
    consumed: outcome,
  }
}

async function eachLine(
  chunks: AsyncIterable<Uint8Array>,
  lineBytesMax: number,
  onLine: (line: string) => unknown,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of chunks) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split(/[\r\n]+/)
      rest = (lines.pop() ?? '').slice(0, lineBytesMax)
      for (const line of lines) if (line !== '') onLine(line.slice(0, lineBytesMax))
    }
  } catch {
    // The pipe breaks when the program is killed; how it ended is told elsewhere.
  }
  if (rest !== '') onLine(rest)
}
