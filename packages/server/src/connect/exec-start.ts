import { argvOf } from '@sandlot/protocol'
import type { MuxStream, PayloadMap } from '@sandlot/protocol/frames'
import { type ExecSpec, GuestError } from '@sandlot/runtime'
import { execError, execSpec } from '../node/commands.ts'
import type { Lent } from '../node/lend.ts'
import { execIdOf } from '../sandboxes/execs.ts'
import { bridgeExec } from './exec-bridge.ts'
import type { Operation } from './session.ts'

const FROM_START = { stdoutFrom: 0, stderrFrom: 0 }

/**
 * Starts a command, or finds the one that an earlier request of this id started: a request whose answer was lost is sent again and
 * never runs a command twice.
 */
export const execStart: Operation<'exec.start'> = async (stream, request, session) => {
  const { node, caller, serving } = session
  using _ = serving.begin({ admitted: node.isOfAttempt(request.sandbox) })
  const { signal } = stream
  using lent = await node.sandboxes.lend(request.sandbox, { project: caller.project, signal })
  const { world, env, cwd, user, timeout, stdin, mode } = request
  const spec: ExecSpec = {
    ...execSpec(lent, {
      exec: execIdOf(request.exec),
      argv: argvOf(request.command),
      ...(world ? { world } : {}),
      ...(env ? { env } : {}),
      ...(cwd === undefined ? {} : { cwd }),
      ...(user === undefined ? {} : { user }),
      ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    }),
    stdin,
    mode,
  }
  try {
    const { keptBytes, ...end } = await startOrFind(stream, lent, spec)
    node.commands.keep(lent, { exec: spec.exec, sizeBytes: keptBytes })
    return end satisfies PayloadMap
  } catch (error) {
    if (signal.aborted) throw error
    throw execError(error) ?? (await lent.explain(error))
  }
}

async function startOrFind(stream: MuxStream, lent: Lent, spec: ExecSpec) {
  const { signal } = stream
  const options = { stdin: spec.stdin, from: FROM_START, attached: false }
  try {
    return await bridgeExec(stream, lent.guest.exec.start(spec, { signal }), options)
  } catch (error) {
    if (!(error instanceof GuestError) || error.code !== 'exec_exists') throw error
    const handle = lent.guest.exec.attach(spec.exec, FROM_START, { signal })
    return await bridgeExec(stream, handle, { ...options, attached: true })
  }
}
