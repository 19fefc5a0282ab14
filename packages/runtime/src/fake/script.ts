import type { FateKind } from '../driver.ts'
import type { GuestExecLimit, TerminalSize } from '../guest/guest.ts'
import type { FakeFiles } from './files.ts'
import type { FakeServer } from './ports.ts'

/** A command as the script sees it. */
export interface FakeCommand {
  /** Id of the sandbox. */
  readonly sandbox: string
  readonly world: string
  readonly exec: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly user: string
  /** What `run` was given; empty for a started exec, whose handle writes later. */
  readonly stdin: Uint8Array
  /** Of a command that runs at a terminal. */
  readonly terminal?: TerminalSize
  /** Files of the command's world: read them, write them. */
  readonly files: FakeFiles
  /** Aborted when the command is killed, times out, or its sandbox dies. */
  readonly signal: AbortSignal
  /** Listens on a port until it ends. Address: default `0.0.0.0`. */
  readonly listen: (port: number, server: FakeServer, address?: string) => void
}

/** What the command does. Without anything: it exits with 0 at once, silently. */
export interface FakeReply {
  /** Default 0. */
  readonly exitCode?: number
  /** Ends by this signal instead. */
  readonly signal?: number
  readonly stdout?: string | Uint8Array
  readonly stderr?: string | Uint8Array
  /** How long it runs, on the driver's clock. Default 0. */
  readonly delayMs?: number
  /** Runs until it is killed; its output is there meanwhile. */
  readonly hangs?: boolean
  /** Ends the sandbox in this way after `delayMs`; the exec has no result. */
  readonly dies?: FateKind
  /** Processes left running. Default 0. */
  readonly left?: number
  /** Of its world, met meanwhile. Default: none. */
  readonly limits?: readonly GuestExecLimit[]
  /** At a terminal: runs on, and does this for each piece that is typed; nothing was typed where the size has changed. */
  readonly types?: (typed: string, size: TerminalSize) => FakeTyped
}

/** What a command does with what was typed. */
export interface FakeTyped {
  readonly prints?: string
  /** It ends. */
  readonly exitCode?: number
}

/** Decides what a command does. A promise keeps the command running meanwhile. */
export type FakeScript = (command: FakeCommand) => FakeReply | Promise<FakeReply>

/** Waiting on the driver's clock; the default is the machine's. */
export interface FakeClock {
  now(): number
  /** Calls back once; the returned function cancels it. */
  after(delayMs: number, call: () => void): () => void
}

export const machineClock: FakeClock = {
  now: () => performance.now(),
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs)
    return () => clearTimeout(timer)
  },
}

/**
 * Says what every command named here does; others exit with 0. Enough of a shell for tests that have no script:
 * `true`, `false`, `echo`, `cat FILE`, `sleep SECONDS`, `sh -c 'exit N'`.
 */
export const fewCommands: FakeScript = ({ argv, files, stdin }) => {
  const [name, ...rest] = argv
  if (name === 'false') return { exitCode: 1 }
  if (name === 'echo') return { stdout: `${rest.join(' ')}\n` }
  if (name === 'sleep') return { delayMs: Number(rest[0]) * 1000 }
  if (name === 'cat') {
    if (rest[0] === undefined) return { stdout: stdin }
    const bytes = files.bytes(rest[0])
    if (bytes) return { stdout: bytes }
    return { exitCode: 1, stderr: `cat: ${rest[0]}: No such file or directory\n` }
  }
  const exit = name === 'sh' && rest[0] === '-c' ? /^exit (\d+)$/.exec(rest[1] ?? '') : null
  return exit ? { exitCode: Number(exit[1]) } : {}
}
