import { execIdOf } from '../sandboxes/execs.ts'
import { bridgeExec } from './exec-bridge.ts'
import type { Operation } from './session.ts'

/** Finds a command that runs or ran, from given offsets into its output. */
export const execAttach: Operation<'exec.attach'> = async (stream, request, session) => {
  const { node, caller, serving } = session
  using begun = serving.begin({ admitted: node.isOfAttempt(request.sandbox) })
  if (request.terminal) begun[Symbol.dispose]()
  const { signal } = stream
  using lent = await node.sandboxes.lend(request.sandbox, { project: caller.project, signal })
  const from = { stdoutFrom: request.stdoutFrom, stderrFrom: request.stderrFrom }
  try {
    const handle = lent.guest.exec.attach(execIdOf(request.exec), from, { signal })
    const options = { stdin: true, from, attached: true }
    const { keptBytes: _, ...end } = await bridgeExec(stream, handle, options)
    return end
  } catch (error) {
    if (signal.aborted) throw error
    throw await lent.explain(error)
  }
}
