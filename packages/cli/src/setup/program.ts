/** Starts the tools that the set-up needs: argument arrays, a deadline, bounded output, and an end to all they started. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { place } from '../config.ts'

export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Aborted: the program is told to end with all it started, and the call throws the signal's reason. */
  readonly signal?: AbortSignal
  /** How it is told to end, and how long it has for it. Default SIGTERM, 5 seconds. */
  readonly endBy?: { readonly signal: NodeJS.Signals; readonly graceMs: number }
  /** It goes on should this process end. */
  readonly outlives?: boolean
  /** Gets each line of output as it comes. */
  readonly onLine?: (line: string) => void
}

export interface ProgramEnd {
  readonly ok: boolean
  /** Undefined where a signal ended it, or where it could not be started. */
  readonly exitCode: number | undefined
  /** Both streams, the last 64 KiB of characters; why it could not be started, or was ended, where it said nothing. */
  readonly output: string
}

const OUTPUT_CHARACTERS_MAX = 64 * 1024

/** Runs a program to its end. A program that fails is a result, one that can't be started or is too slow too. */
export async function runProgram(
  file: string,
  argv: readonly string[],
  options: ProgramOptions,
): Promise<ProgramEnd> {
  const { timeoutMs, signal, onLine } = options
  signal?.throwIfAborted()
  // A process group of its own, so that its end is the end of all it started; Ctrl-C comes to us alone.
  const child = execa(file, argv, {
    buffer: false,
    reject: false,
    stdin: 'ignore',
    detached: true,
    env: { PATH: place.searchPath, ...options.env },
    ...(options.cwd ? { cwd: options.cwd } : {}),
  })
  using ending = endGroup(child.pid, options)
  let output = ''
  const read = async (from: 'stdout' | 'stderr') => {
    for await (const line of child.iterable({ from })) {
      output = `${output}${line}\n`.slice(-OUTPUT_CHARACTERS_MAX)
      onLine?.(String(line))
    }
  }
  // How they end, the end of the child says.
  await Promise.allSettled([read('stdout'), read('stderr')])
  const end = await child
  signal?.throwIfAborted()
  if (ending.isLate) output += `ended after ${Math.round(timeoutMs / 1000)} s\n`
  else if (end.failed && output === '') output = end.shortMessage ?? ''
  return { ok: !end.failed && !ending.isLate, exitCode: end.exitCode, output }
}

interface GroupEnd extends Disposable {
  readonly isLate: boolean
}

/** Ends the process group when it is late, when the signal is aborted, and with this process. */
function endGroup(pid: number | undefined, options: ProgramOptions): GroupEnd {
  const { timeoutMs, signal, outlives, endBy = { signal: 'SIGTERM', graceMs: 5_000 } } = options
  const state = { isLate: false }
  let forced: NodeJS.Timeout | undefined
  const kill = (how: NodeJS.Signals) => {
    try {
      if (pid !== undefined) process.kill(-pid, how)
    } catch {
      // It is over.
    }
  }
  const end = () => {
    kill(endBy.signal)
    forced ??= setTimeout(() => kill('SIGKILL'), endBy.graceMs)
  }
  const late = setTimeout(() => {
    state.isLate = true
    end()
  }, timeoutMs)
  const leave = () => kill('SIGKILL')
  signal?.addEventListener('abort', end, { once: true })
  if (!outlives) process.once('exit', leave)
  return {
    get isLate() {
      return state.isLate
    },
    [Symbol.dispose]() {
      clearTimeout(late)
      clearTimeout(forced)
      signal?.removeEventListener('abort', end)
      process.off('exit', leave)
    },
  }
}

/** The absolute path of a program, or undefined. Default: where this machine has its programs. */
export async function findProgram(
  name: string,
  searchPath: string = place.searchPath,
): Promise<string | undefined> {
  for (const directory of searchPath.split(delimiter)) {
    if (directory === '') continue
    const path = join(directory, name)
    if (await isExecutable(path)) return path
  }
  return undefined
}

export async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
