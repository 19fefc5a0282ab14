import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { GvisorOptions, SandboxSpec } from '@sandlot/runtime'

const program = fileURLToPath(new URL('./doomed-daemon.ts', import.meta.url))

/**
 * Starts one sandbox for each spec, each with its own id in the file `/left`, and a blank besides, in a daemon that is then
 * killed. They live on, and belong to whoever recovers them.
 */
export async function orphanSandboxes(
  options: GvisorOptions,
  specs: readonly SandboxSpec[],
): Promise<void> {
  const daemon = spawn(process.execPath, [program, JSON.stringify({ options, specs })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(daemon, 'exit')
  const [line] = await Promise.race([once(createInterface(daemon.stdout), 'line'), exited])
  daemon.kill('SIGKILL')
  await exited
  if (line !== 'ready') throw new Error(`the doomed daemon could not start its sandboxes: ${line}`)
}
