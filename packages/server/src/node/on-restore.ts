import { argvOf, formatDuration, newId, type RestoreCommand, SandlotError } from '@sandlot/protocol'
import { GuestLost, type Sandbox } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import { execError, execSpec } from './commands.ts'
import { endedHow, SAID_BYTES, withWords } from './ended-how.ts'
import type { Lent } from './lend.ts'
import { unlessLate } from './waits.ts'

/**
 * Runs the command of a sandbox that was restored to its end, as its commands run.
 * @throws SandlotError `on_restore_failed` where it did not exit with 0; and as a call to the guest does
 */
export async function runOnRestore(
  sandbox: Sandbox,
  seen: Pick<Lent, 'env' | 'workdir' | 'user'>,
  command: RestoreCommand,
  signal: AbortSignal,
): Promise<void> {
  const { env, cwd, user, timeout: timeoutMs = SERVER_LIMITS.onRestoreMs } = command
  const request = {
    ...{ exec: newId('exec'), argv: argvOf(command.command), timeoutMs },
    ...{ headBytes: 0, tailBytes: SAID_BYTES },
    ...(env ? { env } : {}),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
  }
  try {
    const end = await sandbox.guest.exec.run(execSpec(seen, request), { signal })
    const { exitCode = null, signal: endedBy = null, timedOut, stdout, stderr } = end
    if (exitCode === 0 && !timedOut) return
    const late = `did not end in ${formatDuration(timeoutMs)}`
    const how = timedOut ? withWords(late, end) : endedHow({ ...end, exitCode, signal: endedBy })
    const said = { stdout: textOf(stdout), stderr: textOf(stderr) }
    throw failed(how, { exitCode, signal: endedBy, timedOut, ...said })
  } catch (error) {
    if (error instanceof GuestLost) throw await lost(sandbox, error)
    const unstarted = execError(error)
    throw unstarted ? failed(`did not run: ${unstarted.message}`, unstarted.details) : error
  }
}

/** What a command takes of the sandbox's memory is its own doing; what else ends a sandbox is not. */
async function lost({ gone }: Sandbox, error: GuestLost): Promise<unknown> {
  const fate = await unlessLate(gone, SERVER_LIMITS.fateMs).catch(() => undefined)
  return fate?.kind === 'oom_limit'
    ? failed(`ended the sandbox (${fate.kind}): ${fate.detail}`)
    : error
}

function failed(how: string, details?: Record<string, unknown>): SandlotError {
  return new SandlotError('on_restore_failed', `onRestore ${how}`, details ? { details } : {})
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}
