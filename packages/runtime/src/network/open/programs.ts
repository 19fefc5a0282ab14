import { access } from 'node:fs/promises'
import { run } from '../../process/run.ts'
import { NETWORK_LIMITS } from '../limits.ts'

/** What a program of the system said; `problem`: why it failed. */
export interface Said {
  readonly stdout: string
  readonly problem?: string
}

/** `lines`: of a batch. */
export function ip(args: readonly string[], lines?: readonly string[]): Promise<Said> {
  return say('ip', args, lines && `${lines.join('\n')}\n`)
}

export function nft(args: readonly string[], input?: string): Promise<Said> {
  return say('nft', args, input)
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

export async function say(program: string, args: readonly string[], input?: string): Promise<Said> {
  const options = { timeoutMs: NETWORK_LIMITS.programMs, ...(input === undefined ? {} : { input }) }
  const outcome = await run(program, args, options).catch(() => undefined)
  if (outcome === undefined) return { stdout: '', problem: `${program} can’t be run` }
  const { exitCode, stdout, stderr, problem } = outcome
  if (exitCode === 0) return { stdout }
  return { stdout, problem: stderr.trim().split('\n')[0] || problem || `${program} failed` }
}
