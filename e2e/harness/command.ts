/** `./sandlot` as a user types it. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const sandlot = fileURLToPath(new URL('../../sandlot', import.meta.url))
/** For what hangs alone: an examination of many tasks takes a minute on a machine that is busy. */
const TIMEOUT_MS = 170_000

export interface CommandEnd {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function startCommand(
  argv: readonly string[],
  environment: Record<string, string> = {},
): ChildProcessWithoutNullStreams {
  return spawn(sandlot, argv, { stdio: 'pipe', env: { ...process.env, ...environment } })
}

/** Runs it to its end; a command that needs too long is killed, and has no code. */
export async function runCommand(
  argv: readonly string[],
  options: { readonly environment?: Record<string, string>; readonly input?: string } = {},
): Promise<CommandEnd> {
  const child = startCommand(argv, options.environment)
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (bytes) => {
    said.stdout += bytes
  })
  child.stderr.on('data', (bytes) => {
    said.stderr += bytes
  })
  // A command that is not interested takes nothing.
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code, ...said }
}
