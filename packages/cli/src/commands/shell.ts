/** `sandlot sandbox shell`. */
import { type Pty, type Sandbox, Sandlot, SandlotError } from 'sandlot'
import { ownTerm } from '../config.ts'
import { Failure, Mistake } from '../failure.ts'
import { isTyped, type OwnTerminal, takeTerminal } from '../output/own-terminal.ts'
import { formatTable } from '../output/table.ts'
import { note, printLine } from '../output/terminal.ts'
import { EscapeKeys } from '../shell/escape.ts'
import { Replay } from '../shell/replay.ts'
import { Typing } from '../shell/typing.ts'
import { EXIT_INTERRUPTED } from './interruption.ts'
import { given, pairs } from './options.ts'
import { type ExecCommandOptions, execCommand } from './sandboxes.ts'

export interface ShellOptions extends Omit<ExecCommandOptions, 'timeout'> {
  /** The id of a terminal that is there. */
  readonly attach?: string
  readonly term?: string
  readonly list?: boolean
  readonly kill?: string
}

/** The same choice as of a terminal, for a shell that is fed by a pipe. */
const PIPED_SHELL =
  '[ -x "$SHELL" ] && exec "$SHELL"; [ -x /bin/bash ] && exec /bin/bash; exec /bin/sh'

/** A shell or another command with this terminal as its own; its exit code is ours. Fed by a pipe it is a plain command. */
export async function shellCommand(
  id: string,
  argv: readonly string[],
  options: ShellOptions,
): Promise<number> {
  checkTogether(argv, options)
  if (options.list) return await listTerminals(id)
  if (options.kill !== undefined) return await killTerminal(id, options.kill)
  if (!isTyped()) {
    if (options.attach === undefined) return await runPiped(id, argv, options)
    throw new Mistake(
      'standard input is no terminal: nobody could type',
      `attach from a terminal, or read what it shows: sandlot sandbox logs ${id} --exec ${options.attach}`,
    )
  }
  let ours: OwnTerminal | undefined
  await using client = new Sandlot({ onNotice: ({ message }) => ours?.say(message) })
  const sandbox = await client.sandboxes.get(id)
  using terminal = takeTerminal()
  ours = terminal
  const { pty, until } = await open(sandbox, argv, { options, terminal })
  const left = await lend(pty, { terminal, replay: new Replay(until) })
  terminal[Symbol.dispose]()
  return await endOf(pty, { left, sandbox: id })
}

function checkTogether(argv: readonly string[], options: ShellOptions): void {
  const { attach, list, kill, env, cwd, user, term } = options
  const asked = [attach !== undefined, list, kill !== undefined].filter((each) => each)
  if (asked.length > 1) {
    throw new Mistake('--list, --attach and --kill are one thing each', 'say one of them')
  }
  const isFound = asked.length > 0
  const begins = argv.length > 0 || [env, cwd, user, term].some((each) => each !== undefined)
  if (!isFound || !begins) return
  throw new Mistake(
    'a terminal that is there has its command, user and surroundings already',
    'leave out the command, --env, --cwd, --user and --term',
  )
}

async function runPiped(id: string, argv: readonly string[], options: ShellOptions) {
  const { env, cwd, user } = options
  const command = argv.length > 0 ? argv : ['/bin/sh', '-c', PIPED_SHELL]
  return await execCommand(id, command, given({ env, cwd, user }))
}

async function open(
  sandbox: Sandbox,
  argv: readonly string[],
  { options, terminal }: { readonly options: ShellOptions; readonly terminal: OwnTerminal },
): Promise<{ readonly pty: Pty; readonly until: number }> {
  const { size } = terminal
  if (options.attach !== undefined) {
    const terminals = await sandbox.ptys.list()
    const found = terminals.find(({ exec }) => exec === options.attach)?.terminal
    if (!found) {
      const list = `sandlot sandbox shell ${sandbox.id} --list`
      throw new Mistake(`there is no terminal ${options.attach}`, `see which there are: ${list}`)
    }
    // A program that fills the screen draws it anew where the size changes.
    const rows = Math.max(1, size.rows - 1)
    const pty = await sandbox.ptys.attach(options.attach, { size: { ...size, rows } })
    await pty.resize(size)
    return { pty, until: found.printedBytes }
  }
  const { cwd, user, term = ownTerm } = options
  const env = pairs(options.env ?? [], '--env')
  const command = argv.length > 0 ? { command: argv } : {}
  const pty = await sandbox.pty({ ...command, size, env, ...given({ cwd, user, term }) })
  return { pty, until: 0 }
}

type Left = 'detached' | 'SIGTERM' | 'SIGHUP' | 'SIGINT' | undefined

/** Joins the two terminals until one of them has enough; says which of ours had. */
async function lend(
  pty: Pty,
  { terminal, replay }: { readonly terminal: OwnTerminal; readonly replay: Replay },
): Promise<Left> {
  const keys = new EscapeKeys()
  const typing = new Typing(pty, terminal.hold)
  let left: Left
  const leave = (how: Left) => {
    left ??= how
    pty.detach()
  }
  const onKeys = (pressed: Uint8Array) => {
    const { typed, asked } = keys.press(pressed)
    typing.say(typed)
    for (const each of asked) {
      if (each === 'leave') leave('detached')
      else terminal.say(`~. leaves ${pty.id}, which goes on   ~~ types one ~   ~? says this`)
    }
  }
  // A size that could not be told is told with the next change.
  const onSize = () => void pty.resize(terminal.size).catch(() => undefined)
  const onSignal = (signal: NodeJS.Signals) => leave(signal as Left)
  for (const signal of SIGNALS) process.on(signal, onSignal)
  terminal.listen(onKeys, onSize)
  try {
    for await (const piece of pty) await terminal.show(replay.show(piece))
  } catch (error) {
    // How the terminal ended its result says.
    if (!(error instanceof SandlotError)) throw error
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
  return left
}

const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const
const CODES = { SIGTERM: 143, SIGHUP: 129, SIGINT: EXIT_INTERRUPTED, detached: 0 } as const

async function endOf(
  pty: Pty,
  { left, sandbox }: { readonly left: Left; readonly sandbox: string },
): Promise<number> {
  const again = `sandlot sandbox shell ${sandbox} --attach ${pty.id}`
  try {
    const { exitCode, signal } = await pty.result
    return exitCode ?? 128 + (signal ?? 0)
  } catch (error) {
    if (left) {
      note(`left ${pty.id}, which goes on; find it again with: ${again}`)
      return CODES[left]
    }
    if (error instanceof SandlotError && error.code === 'cancelled') {
      throw new Failure('somebody else attached to this terminal', `take it back: ${again}`)
    }
    if (error instanceof SandlotError && ['connection_lost', 'unreachable'].includes(error.code)) {
      throw new Failure(
        error.message,
        `the terminal goes on with its sandbox; once the daemon answers: ${again}`,
      )
    }
    throw error
  }
}

async function listTerminals(id: string): Promise<number> {
  await using client = new Sandlot()
  const terminals = await (await client.sandboxes.get(id)).ptys.list()
  if (terminals.length === 0) {
    note('no terminals')
    return 0
  }
  const rows = terminals.map((each) => [
    each.exec,
    each.running ? 'running' : 'ended',
    new Date(each.startedAtMs).toISOString(),
    each.command,
  ])
  printLine(formatTable(['TERMINAL', 'STATE', 'STARTED', 'COMMAND'], rows))
  return 0
}

async function killTerminal(id: string, terminal: string): Promise<number> {
  await using client = new Sandlot()
  const { processes } = await (await client.sandboxes.get(id)).ptys.kill(terminal)
  note(processes > 0 ? `killed ${terminal}` : `${terminal} is over already: nothing of it ran`)
  return 0
}
