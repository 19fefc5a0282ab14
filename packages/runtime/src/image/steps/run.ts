/** The layer of a step that runs a command: what the command changed in a sandbox of its own. */
import type { ExecResult, ExecSpec } from '../../guest/guest.ts'
import { GuestError } from '../../guest/guest-error.ts'
import type { Image } from '../image.ts'
import { ImageError } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import { type WrittenLayer, writeTarLayer } from '../tar-layer.ts'
import type { StepContext, StepOf } from './apply.ts'
import type { StepMachine } from './machine.ts'
import { OutputLines } from './output-lines.ts'

const WORLD = 'main'
const EXEC = 'step'

export async function runLayer(
  step: StepOf<'run'>,
  parent: Image,
  context: StepContext,
): Promise<WrittenLayer | undefined> {
  const { signal, layerPath } = context
  const network = step.network ?? 'none'
  await using machine = await context.openMachine({ image: parent, network }, { signal })
  const result = await runCommand(machine, commandOf(step, parent, context, machine), context)
  if (result.exitCode !== 0) throw failure(result, context)
  try {
    const tar = machine.difference({ signal })
    const written = await writeTarLayer(tar, { path: layerPath, settled: true, onLog: context.log })
    return written.root.children.size === 0 ? undefined : written
  } catch (error) {
    signal.throwIfAborted()
    throw await machine.explain(error)
  }
}

type Command = Omit<ExecSpec, 'world' | 'exec' | 'stdin' | 'mode'>

function commandOf(
  { command, env }: StepOf<'run'>,
  { config }: Image,
  { shell }: StepContext,
  machine: StepMachine,
): Command {
  const argv = typeof command === 'string' ? [...shell, command] : command
  return {
    argv,
    env: Object.entries({ ...machine.env, ...config.env, ...env }),
    cwd: config.workdir,
    user: config.user,
    timeoutMs: imageLimits.stepMs,
  }
}

async function runCommand(
  { guest, explain }: StepMachine,
  command: Command,
  { signal, log }: StepContext,
): Promise<ExecResult> {
  const lines = new OutputLines(log)
  try {
    const handle = guest.exec.start(
      { ...command, world: WORLD, exec: EXEC, stdin: false, mode: 'stream' },
      { signal },
    )
    for (const settled of [handle.started, handle.result]) settled.catch(() => {})
    for await (const { channel, bytes } of handle.output) lines.take(channel, bytes)
    const result = await handle.result
    // What it left running would go on writing while its files are read.
    if (result.left > 0) await guest.exec.kill(EXEC, 9, { signal })
    return result
  } catch (error) {
    signal.throwIfAborted()
    throw notStarted(error, command) ?? (await explain(error))
  } finally {
    lines.end()
  }
}

function notStarted(error: unknown, { argv, cwd, user }: Command): ImageError | undefined {
  if (!(error instanceof GuestError)) return undefined
  const [program] = argv
  const hints: Partial<Record<GuestError['code'], string>> = {
    not_found: `The image has no ${String(program)}, or no directory ${String(cwd)}: give the command as an argument list, name another shell, or take a base that has it.`,
    invalid: `The image may not know the user ${user}: its /etc/passwd is looked up; numbers always do.`,
    permission: `The user ${user} may not run ${String(program)} in ${String(cwd)}.`,
  }
  const hint = hints[error.code]
  if (hint === undefined) return undefined
  return new ImageError('image_build_failed', `the command did not start: ${error.message}`, {
    hint,
    cause: error,
  })
}

function failure(result: ExecResult, { logTail }: StepContext): ImageError {
  const { exitCode, signal, timedOut } = result
  const how = timedOut
    ? `did not end within ${imageLimits.stepMs / 60_000} minutes`
    : exitCode === undefined
      ? `was ended by signal ${signal}`
      : `ended with exit code ${exitCode}`
  const tail = logTail()
  const last = tail.slice(-imageLimits.logLinesInMessage).join('\n')
  const message = `the command ${how}${last === '' ? ', and wrote nothing' : `:\n${last}`}`
  return new ImageError('image_build_failed', message, {
    hint: 'Its last lines say why. From the network it gets what its policy allows, by default the package mirrors alone.',
    logTail: tail,
    ...(exitCode === undefined ? {} : { exitCode }),
  })
}
