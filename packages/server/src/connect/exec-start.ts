import { argvOf, type ConnectRequest, SandlotError, TERM_DEFAULT } from '@sandlot/protocol'
import type { MuxStream, PayloadMap } from '@sandlot/protocol/frames'
import { type ExecSpec, GuestError } from '@sandlot/runtime'
import { execError, execSpec } from '../node/commands.ts'
import type { Lent } from '../node/lend.ts'
import { watchLimits } from '../node/met-limits.ts'
import { execIdOf } from '../sandboxes/execs.ts'
import { shellOf } from '../sandboxes/shell.ts'
import { bridgeExec } from './exec-bridge.ts'
import type { Operation } from './session.ts'

type StartRequest = Extract<ConnectRequest, { op: 'exec.start' }>

const FROM_START = { stdoutFrom: 0, stderrFrom: 0 }

/**
 * Starts a command, or finds the one that an earlier request of this id started: a request whose answer was lost is sent again and
 * never runs a command twice.
 */
export const execStart: Operation<'exec.start'> = async (stream, request, session) => {
  const { node, caller, serving } = session
  using begun = serving.begin({ admitted: node.isOfAttempt(request.sandbox) })
  // Somebody may sit at a terminal for days; it is found again by the next daemon.
  if (request.terminal) begun[Symbol.dispose]()
  const { signal } = stream
  using lent = await node.sandboxes.lend(request.sandbox, { project: caller.project, signal })
  try {
    const spec = await specOf(lent, request)
    const { keptBytes, ...end } = await startOrFind(stream, lent, spec)
    node.commands.keep(lent, { exec: spec.exec, sizeBytes: keptBytes })
    return end satisfies PayloadMap
  } catch (error) {
    if (signal.aborted) throw error
    throw execError(error) ?? (await lent.explain(error))
  }
}

async function specOf(lent: Lent, request: StartRequest): Promise<ExecSpec> {
  const { world, cwd, user, timeout, stdin, mode, terminal } = request
  const env = terminal ? { TERM: terminal.term ?? TERM_DEFAULT, ...request.env } : request.env
  return {
    ...execSpec(lent, {
      exec: execIdOf(request.exec),
      argv: await commandOf(lent, request),
      ...(world ? { world } : {}),
      ...(env ? { env } : {}),
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
      ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    }),
    stdin,
    mode,
    ...(terminal ? { terminal: { columns: terminal.columns, rows: terminal.rows } } : {}),
  }
}

async function commandOf(lent: Lent, { command, terminal, env, world }: StartRequest) {
  if (command !== undefined) return argvOf(command)
  if (terminal) return await shellOf(lent, world ?? 'main', env?.SHELL ?? lent.env.SHELL)
  throw new SandlotError('invalid_request', 'command: there is none, and no terminal for a shell')
}

async function startOrFind(stream: MuxStream, lent: Lent, spec: ExecSpec) {
  const { signal } = stream
  const options = { stdin: spec.stdin, from: FROM_START, attached: false }
  try {
    const met = await watchLimits(lent)
    const handle = lent.guest.exec.start(spec, { signal })
    return await bridgeExec(stream, handle, { ...options, met })
  } catch (error) {
    if (!(error instanceof GuestError) || error.code !== 'exec_exists') throw error
    const handle = lent.guest.exec.attach(spec.exec, FROM_START, { signal })
    return await bridgeExec(stream, handle, { ...options, attached: true })
  }
}
