/** The layer of a step that runs a command: what the command changed in a sandbox of its own. */
import { posix } from 'node:path'
import { startProblem } from '@sandlot/protocol'
import type { ExecResult, ExecSpec } from '../../guest/guest.ts'
import type { Image } from '../image.ts'
import { ImageError } from '../image-error.ts'
import { imageLimits } from '../limits.ts'
import type { WrittenLayer } from '../tar-layer.ts'
import type { StepContext, StepOf } from './apply.ts'
import { changedLayer } from './changed-layer.ts'
import type { StepMachine } from './machine.ts'
import { OutputLines } from './output-lines.ts'
import { commandFailed, limitsMet, notStarted } from './run-failure.ts'

const WORLD = 'main'
const EXEC = 'step'

export async function runLayer(
  step: StepOf<'run'>,
  parent: Image,
  context: StepContext,
): Promise<WrittenLayer | undefined> {
  const { signal } = context
  const network = step.network ?? 'none'
  await using machine = await context.openMachine({ image: parent, network }, { signal })
  const command = commandOf(step, parent, context, machine)
  const result = await runCommand(machine, command, context)
  if (result.exitCode !== 0) {
    throw commandFailed(result, command, { ...context, met: await limitsMet(machine.guest) })
  }
  return await changedLayer(machine, context)
}

export interface Command extends Omit<ExecSpec, 'world' | 'exec' | 'stdin' | 'mode'> {
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
