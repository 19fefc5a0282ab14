/** The command of a program, or of one of its steps. */
import { argvOf, PROGRAM_ENV, type ProgramSpec, SandlotError } from '@sandlot/protocol'
import { NETWORK_LIMITS } from '@sandlot/runtime'
import type { NodeExecEnd } from '../../node/port.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import { isStopping, type SandboxWork } from '../sandboxes.ts'

export interface AgentCommand {
  readonly sandbox: string
  readonly exec: string
  readonly program: Pick<ProgramSpec, 'command' | 'env' | 'cwd' | 'user'>
  /** What its environment has beside its own. */
  readonly told: Readonly<Record<string, string>>
}

/** How it ended. Undefined where its end was ordered, and there is none. */
export async function runCommand(
  work: SandboxWork,
  { sandbox, exec, program, told }: AgentCommand,
  stop: AbortSignal,
): Promise<NodeExecEnd | undefined> {
  const { node, signal, clock } = work
  const late = Promise.withResolvers<undefined>()
  let isRunning = true
  let cancelWait = () => {}
  const onStop = async () => {
    if (!(await end(work, { sandbox, exec }, () => isRunning))) return
    cancelWait = clock.after(COORDINATOR_LIMITS.endMs, () => late.resolve(undefined))
  }
  if (stop.aborted) void onStop()
  else stop.addEventListener('abort', onStop, { once: true })
  const running = node.exec(
    {
      ...{ sandbox, exec, argv: argvOf(program.command) },
      env: { ...program.env, ...told },
      ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
      ...(program.user === undefined ? {} : { user: program.user }),
      headBytes: COORDINATOR_LIMITS.outputHeadBytes,
      tailBytes: COORDINATOR_LIMITS.outputTailBytes,
    },
    { signal },
  )
  try {
    return await Promise.race([running, late.promise])
  } finally {
    isRunning = false
    running.catch(() => {})
    cancelWait()
    stop.removeEventListener('abort', onStop)
  }
}

/** Where its model is inside. */
export function modelEnv({ model }: Pick<ProgramSpec, 'model'>): Record<string, string> {
  if (model === undefined) return {}
  const path = new URL(model.url).pathname.replace(/\/+$/, '')
  return { [PROGRAM_ENV.modelUrl]: `http://127.0.0.1:${NETWORK_LIMITS.port}${path}` }
}

/** Ends the command with all it started; whether the sandbox said so. One that is just beginning is not there yet. */
async function end(
  { node, clock, signal, warn }: SandboxWork,
  { sandbox, exec }: { readonly sandbox: string; readonly exec: string },
  isRunning: () => boolean,
): Promise<boolean> {
  while (isRunning()) {
    try {
      await node.killExec({ sandbox, exec }, { signal })
      return isRunning()
    } catch (error) {
      if (!isRunning() || isStopping(error, signal)) return false
      // It went with its sandbox.
      if (error instanceof SandlotError && error.code === 'sandbox_gone') return false
      if (!(error instanceof SandlotError && error.code === 'exec_unknown')) {
        warn(`could not end a program in ${sandbox}`, error)
        return false
      }
    }
    await new Promise<void>((resolve) => void clock.after(COORDINATOR_LIMITS.stopEveryMs, resolve))
  }
  return false
}
