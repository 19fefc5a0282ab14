import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** A long-lived program that takes lines on stdin and gives lines on stdout; it ends with its stdin. */
export interface LineChild {
  readonly pid: number
  /** One line, without its newline. */
  send(line: string): void
  /** Resolves with one line of why, once it has ended or could not be started. Never rejects. */
  readonly ended: Promise<string>
  /** Closes its stdin and waits for its end, by SIGKILL where it does not come for long. Idempotent. */
  close(): Promise<void>
}

/** More than it may have left to do: the host helper sees through that a sandbox goes on (`holdMs`). */
const CLOSE_MS = 15_000
const STDERR_TAIL_CHARS = 2000

export function startLineChild(
  program: string,
  args: readonly string[],
  onLine: (line: string) => void,
): LineChild {
  const child = spawn(program, [...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {},
    // Of its own process group, so that ^C in a terminal reaches the daemon alone.
    detached: true,
  })
  const ended = untilEnded(child)
  createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on('line', onLine)
  // A child that died between two lines: `ended` tells.
  child.stdin.on('error', () => {})
  return {
    pid: child.pid ?? 0,
    send: (line) => void child.stdin.write(`${line}\n`),
    ended,
    close: async () => {
      child.stdin.end()
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS)
      await ended
      clearTimeout(timer)
    },
  }
}

function untilEnded(child: ChildProcess): Promise<string> {
  let tail = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    tail = (tail + bytes.toString()).slice(-STDERR_TAIL_CHARS)
  })
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`ended with ${signal ?? code} ${tail}`.trim()))
  })
}
