/** The layer of a step that runs a command: what the command changed in a sandbox of its own. */
import { posix } from 'node:path'
import { formatDuration, startProblem } from '@sandlot/protocol'
import type { ExecResult, ExecSpec } from '../../guest/guest.ts'
import { GuestError } from '../../guest/guest-error.ts'
import { LayerTooLarge } from '../erofs/block-file.ts'
import type { Image } from '../image.ts'
import { ImageError } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import { TarError } from '../tar/header.ts'
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
  const command = commandOf(step, parent, context, machine)
  const result = await runCommand(machine, command, context)
  if (result.exitCode !== 0) throw failure(result, command, context)
  try {
    const tar = machine.difference({ signal })
    const written = await writeTarLayer(tar, { path: layerPath, settled: true, onLog: context.log })
    return written.root.children.size === 0 ? undefined : written
  } catch (error) {
    signal.throwIfAborted()
    throw notKept(error) ?? (await machine.explain(error))
  }
}

/** The files that it left are no layer. */
function notKept(error: unknown): ImageError | undefined {
  if (!(error instanceof TarError || error instanceof LayerTooLarge)) return undefined
  return new ImageError(
    'image_build_failed',
    `what the command left can't be kept: ${error.message}`,
    {
      hint: 'Let it remove what nobody needs at its end.',
      cause: error,
    },
  )
}

interface Command extends Omit<ExecSpec, 'world' | 'exec' | 'stdin' | 'mode'> {
  readonly timeoutMs: number
  /** What the shell reads from a file, since it is too long for an argument. */
  readonly script?: string
}

/** Below a memory file system that each world has for itself: no layer has it. */
const SCRIPT = '/dev/shm/.sandlot/step.sh'
/** They read commands from a file as they would from `-c`. */
const SHELLS = new Set(['sh', 'ash', 'bash', 'dash', 'ksh', 'zsh'])

function commandOf(
  { command, env, timeout }: StepOf<'run'>,
  { config }: Image,
  { shell }: StepContext,
  machine: StepMachine,
): Command {
  const argv = typeof command === 'string' ? [...shell, command] : command
  const common = {
    env: Object.entries({ ...machine.env, ...config.env, ...env }),
    cwd: config.workdir,
    user: config.user,
    timeoutMs: timeout ?? imageLimits.stepMs,
  }
  if (startProblem(argv, common.env) === undefined) return { argv, ...common }
  if (typeof command === 'string' && isShell(shell)) {
    const short = [...shell, `. ${SCRIPT}`]
    if (startProblem(short, common.env) === undefined) {
      return { argv: short, script: command, ...common }
    }
  }
  throw new ImageError('image_build_failed', startProblem(argv, common.env) ?? '', {
    hint: 'Copy a script into the image and run that. The variables of the image count too.',
  })
}

function isShell([program = '', ...rest]: readonly string[]): boolean {
  return SHELLS.has(posix.basename(program)) && /^-[A-Za-z]*c$/.test(rest.at(-1) ?? '')
}

async function runCommand(
  { guest, explain }: StepMachine,
  { script, ...command }: Command,
  { signal, log }: StepContext,
): Promise<ExecResult> {
  const lines = new OutputLines(log)
  try {
    if (script !== undefined) {
      const options = { mode: 0o644, parents: true }
      await guest.files.write(WORLD, SCRIPT, Buffer.from(script), options, { signal })
    }
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

function notStarted(
  error: unknown,
  { argv, cwd, user }: Pick<Command, 'argv' | 'cwd' | 'user'>,
): ImageError | undefined {
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

function failure(
  { exitCode, signal, timedOut }: ExecResult,
  { timeoutMs }: Command,
  { logTail }: StepContext,
): ImageError {
  const how = timedOut
    ? `did not end within ${formatDuration(timeoutMs)}`
    : exitCode === undefined
      ? `was ended by signal ${signal}`
      : `ended with exit code ${exitCode}`
  const tail = logTail()
  const last = tail.slice(-imageLimits.logLinesInMessage).join('\n')
  const message = `the command ${how}${last === '' ? ', and wrote nothing' : `:\n${last}`}`
  return new ImageError('image_build_failed', message, {
    hint: timedOut
      ? 'Its last lines say how far it came. Give the step more time by its `timeout`, or let it do less.'
      : 'Its last lines say why. From the network it gets what its policy allows, by default the package mirrors alone.',
    logTail: tail,
    ...(exitCode === undefined ? {} : { exitCode }),
  })
}
