/** A task and who does it → a program episode: where the format has its files, and how it runs its scripts. */

import { type NetworkPolicy, type PhaseNetwork, SandlotError } from '@sandlot/protocol'
import { tarOfDirectories } from '../image/copied-files.ts'
import type { ImageDescription } from '../image/image.ts'
import { SOLUTION_SCRIPT, TEST_SCRIPT } from './format.ts'
import type { HarborNetwork, HarborPhase, HarborScript, HarborTask } from './task.ts'

/** `oracle` runs the task's own solution, `nop` does nothing, anything else is a command that finds the instruction in its environment. */
export type HarborAgent = 'oracle' | 'nop' | { readonly command: string | readonly string[] }

export interface HarborProgramOptions {
  readonly agent: HarborAgent
  /** What a phase reaches to which the format gives the whole internet. Default: the package mirrors of the daemon's machine. */
  readonly open?: NetworkPolicy
}

/** The places of the format. */
const [TESTS, SOLUTION, VERDICTS] = ['/tests', '/solution', '/logs/verifier']
const LOGS = ['logs', 'logs/agent', 'logs/artifacts', 'logs/verifier']
const REWARD_FILES = [`${VERDICTS}/reward.json`, `${VERDICTS}/reward.txt`]

/** Where a program finds what it is asked, and the variables that tell. */
export const INSTRUCTION_FILE = '/run/sandlot/instruction.md'
const INSTRUCTION_ENV = { text: 'INSTRUCTION', file: 'INSTRUCTION_FILE' }
/** A longer text, or one that no variable can hold, is in the file alone. */
const INSTRUCTION_ENV_BYTES_MAX = 16 * 2 ** 10

/** A script without a first line that names its shell is run by bash where there is one. */
const runScript = (path: string) => [
  ...['/bin/sh', '-c', 'exec "$(command -v bash || echo /bin/sh)" -c "$1"', 'sh', path],
]

export interface HarborCommand {
  readonly command: string | readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly files: Readonly<
    Record<string, string | { readonly path: string; readonly mode: number }>
  >
  readonly cwd?: string
  readonly user?: string
}

export interface HarborProgram {
  readonly id: string
  readonly from: ImageDescription
  readonly resources: HarborTask['environment']['resources']
  readonly timeout: { readonly agent?: number; readonly grade: number }
  readonly network: PhaseNetwork
  readonly program: HarborCommand
  readonly grade: HarborCommand & {
    readonly in: 'world'
    readonly clear: readonly string[]
    readonly reward: { readonly from: 'file'; readonly paths: readonly string[] }
  }
}

/** @throws SandlotError `invalid_request` for a task that needs more than one program and one grader, or has no solution to run */
export function harborProgram(task: HarborTask, options: HarborProgramOptions): HarborProgram {
  const { verifier, environment, agent } = task
  if (task.steps || !verifier) throw unsupported(task, 'has several steps')
  if (verifier.separate) throw unsupported(task, 'has a verifier in an environment of its own')
  const { timeoutMs } = agent
  return {
    id: task.key,
    from: withLogs(environment.image),
    resources: environment.resources,
    timeout: {
      ...(timeoutMs === undefined ? {} : { agent: timeoutMs }),
      grade: verifier.timeoutMs,
    },
    network: networkOf(task, options.open ?? 'packages'),
    program: { ...placeOf(task, agent), ...agentCommand(task, options.agent) },
    grade: {
      ...placeOf(task, verifier),
      in: 'world',
      // What the agent put there must not be taken for a test or a verdict.
      clear: [TESTS, VERDICTS],
      command: runScript(`${TESTS}/${TEST_SCRIPT}`),
      env: { ...environment.env, ...verifier.env },
      files: filesOf(verifier, TESTS),
      reward: { from: 'file', paths: REWARD_FILES },
    },
  }
}

function agentCommand(task: HarborTask, agent: HarborAgent): HarborCommand {
  const { instruction, environment, solution } = task
  const told = {
    env: { ...environment.env, ...instructionEnv(instruction) },
    files: { [INSTRUCTION_FILE]: instruction },
  }
  if (agent === 'nop') return { ...told, command: ['/bin/sh', '-c', ':'] }
  if (agent !== 'oracle') return { ...told, command: agent.command }
  if (!solution) {
    throw new SandlotError(
      'invalid_request',
      `${task.key} has no solution/${SOLUTION_SCRIPT} that could be run`,
      {
        hint: 'Write one, leave the task out, or take another agent.',
      },
    )
  }
  return {
    command: runScript(`${SOLUTION}/${SOLUTION_SCRIPT}`),
    env: { ...told.env, DEBIAN_FRONTEND: 'noninteractive', ...solution.env },
    files: { ...told.files, ...filesOf(solution, SOLUTION) },
  }
}

function instructionEnv(instruction: string): Record<string, string> {
  const fits = Buffer.byteLength(instruction) <= INSTRUCTION_ENV_BYTES_MAX
  const { text, file } = INSTRUCTION_ENV
  return {
    [file]: INSTRUCTION_FILE,
    ...(fits && !instruction.includes('\0') ? { [text]: instruction } : {}),
  }
}

function placeOf({ environment: { workdir } }: HarborTask, { user }: HarborPhase) {
  return {
    ...(workdir === undefined ? {} : { cwd: workdir }),
    ...(user === undefined ? {} : { user }),
  }
}

function networkOf(
  { environment, agent, verifier }: HarborTask,
  open: NetworkPolicy,
): PhaseNetwork {
  const policyOf = (network: HarborNetwork = environment.network) =>
    network === 'open' ? open : network
  return { agent: policyOf(agent.network), grade: policyOf(verifier?.network) }
}

/** Scripts can be run, whatever they could on this machine. */
function filesOf({ files }: Pick<HarborScript, 'files'>, place: string) {
  return Object.fromEntries(
    files.map(({ name, path }) => [`${place}/${name}`, { path, mode: 0o755 }]),
  )
}

/** Anybody may write there, as in the format's own containers. */
function withLogs(image: ImageDescription): ImageDescription {
  const files = { from: 'the folders for logs', tar: async () => tarOfDirectories(LOGS, 0o777) }
  return image.with({ kind: 'copy', files, to: '/' })
}

function unsupported({ key }: HarborTask, what: string): SandlotError {
  return new SandlotError('invalid_request', `${key} ${what}: it is no program episode`, {
    hint: 'Leave it out.',
  })
}
