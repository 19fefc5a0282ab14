import { setTimeout as pause } from 'node:timers/promises'
import { argvOf, newId, type ReadyCheck, SandlotError } from '@sandlot/protocol'
import { type ExecOutcome, GuestError } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Lent } from '../node/lend.ts'
import type { Started } from './begin-start.ts'
import { listensOn } from './listens-on.ts'

export interface ReadyWait {
  readonly started: Started
  readonly ready: ReadyCheck | undefined
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal
}

/** Asks until the check holds. What ended with a failure will never be ready. */
export async function waitUntilReady(
  lent: Lent,
  { started, ready, timeoutMs = SERVER_LIMITS.readyMs, signal: aborted }: ReadyWait,
): Promise<void> {
  if (ready === undefined) return refuseFailed(started)
  const over = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([aborted, over])
  try {
    for (;;) {
      if (await holds(lent, ready, signal)) return
      refuseFailed(started)
      await pause(SERVER_LIMITS.readyEveryMs, undefined, { signal })
    }
  } catch (error) {
    aborted.throwIfAborted()
    if (!over.aborted) throw error
    throw notReady(`${shown(ready)} after ${timeoutMs / 1000} s`, started)
  }
}

/** A command that exits with 0, or a port that a process inside listens on. */
async function holds(lent: Lent, ready: ReadyCheck, signal: AbortSignal): Promise<boolean> {
  if ('command' in ready) return (await run(lent, argvOf(ready.command), signal)).exitCode === 0
  const { stdout } = await run(lent, ['cat', '/proc/net/tcp', '/proc/net/tcp6'], signal)
  return listensOn(Buffer.from(stdout).toString(), ready.port)
}

async function run(lent: Lent, argv: readonly string[], signal: AbortSignal): Promise<ExecOutcome> {
  const { guest, env, workdir: cwd, user } = lent
  const exec = { world: 'main', exec: newId('exec'), argv, env: Object.entries(env), cwd, user }
  try {
    return await guest.exec.run(exec, { signal })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof GuestError)) throw await lent.explain(error)
    throw new SandlotError('exec_failed', `ready could not be asked: ${error.message}`, {
      hint: 'A port is looked up with cat, which the image needs then; give a command as ready where it has none.',
      cause: error,
    })
  }
}

function refuseFailed(started: Started): void {
  const { ended } = started
  if (ended === undefined || ended.exitCode === 0) return
  const how = ended.exitCode === undefined ? `signal ${ended.signal}` : `exit ${ended.exitCode}`
  throw notReady(`start ended (${how})`, started)
}

function shown(ready: ReadyCheck): string {
  if ('port' in ready) return `nothing listens on port ${ready.port}`
  return `the command of ready does not exit with 0`
}

function notReady(what: string, started: Started): SandlotError {
  const said = started.said()
  return new SandlotError(
    'image_build_failed',
    `the template is not ready: ${what}${said === '' ? '' : `; start said: ${said}`}`,
    { hint: 'Try start in a sandbox of the same image; readyTimeout gives it more time.' },
  )
}
