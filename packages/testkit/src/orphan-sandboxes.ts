import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { GvisorOptions, SandboxSpec } from '@sandlot/runtime'

/** A sandbox to be left behind, and a shell text that runs in it when nobody looks any more. */
export interface OrphanPlan {
  readonly spec: SandboxSpec
  readonly shell?: string
  /** The daemon dies while it saves it. */
  readonly frozen?: boolean
  /** Saved at this path, and a copy of it restored ahead. */
  readonly restored?: string
}

const program = fileURLToPath(new URL('./doomed-daemon.ts', import.meta.url))

/**
 * Starts sandboxes, each with its own id in the file `/left`, and a blank besides, in a daemon that is then killed. They live on,
 * and belong to whoever recovers them. Host ids in the order of the plans, then the blank's, then the copies'.
 */
export async function orphanSandboxes(
  options: GvisorOptions,
  plans: readonly OrphanPlan[],
): Promise<readonly string[]> {
  const daemon = spawn(process.execPath, [program, JSON.stringify({ options, plans })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(daemon, 'exit')
  const [line] = await Promise.race([once(createInterface(daemon.stdout), 'line'), exited])
  daemon.kill('SIGKILL')
  await exited
  if (typeof line !== 'string') throw new Error(`the doomed daemon ended before its time: ${line}`)
  return JSON.parse(line)
}
