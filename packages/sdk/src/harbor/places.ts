/** Where the format has its files, and how its scripts are run. */
import type { BroughtContent } from '../rollout/options.ts'
import type { TaskOptions } from '../rollout/program-options.ts'
import { INSTRUCTION, SOLUTION_SCRIPT, TEST_SCRIPT } from './format.ts'
import type { HarborPhase, HarborScript, HarborTask } from './task.ts'

/** `oracle` runs a task's own solution, `nop` does nothing, and a command finds in its environment what it is asked. */
export type HarborAgent = 'oracle' | 'nop' | { readonly command: string | readonly string[] }

/** The places of the format. */
export const [TESTS, SOLUTION, VERDICTS] = ['/tests', '/solution', '/logs/verifier']
export const REWARD_FILES = [`${VERDICTS}/reward.json`, `${VERDICTS}/reward.txt`]

/** Where a program finds what it is asked, and the variables that tell. */
export const INSTRUCTION_FILE = `/run/sandlot/${INSTRUCTION}`
const INSTRUCTION_ENV = { text: 'INSTRUCTION', file: 'INSTRUCTION_FILE' }
/** A longer text, or one that no variable can hold, is in the file alone. */
const INSTRUCTION_ENV_BYTES_MAX = 16 * 2 ** 10

/** A script without a first line that names its shell is run by bash where there is one. */
const RUN_SCRIPT = 'exec "$(command -v bash || echo /bin/sh)" -c "$1"'

export const NOTHING = ['/bin/sh', '-c', ':']

/** Runs the tests, wherever they are graded. */
export const GRADE_COMMAND = [
  ...['/bin/sh', '-c', `mkdir -p ${VERDICTS} && ${RUN_SCRIPT}`],
  ...['sh', `${TESTS}/${TEST_SCRIPT}`],
]

/** The same where they are a part of the image, which says perhaps not that they can be run. */
export const GRADE_ELSEWHERE = [
  ...[
    '/bin/sh',
    '-c',
    `mkdir -p ${VERDICTS} && { [ -x "$1" ] || chmod +x "$1"; } && ${RUN_SCRIPT}`,
  ],
  ...['sh', `${TESTS}/${TEST_SCRIPT}`],
]

/** What the agent is run by, and what it is told. */
export function agentCommand(
  {
    instruction,
    environment,
    solution,
  }: Pick<HarborTask, 'instruction' | 'environment' | 'solution'>,
  agent: HarborAgent,
): Pick<TaskOptions, 'command' | 'env' | 'files'> {
  const env = { ...environment.env, ...instructionEnv(instruction) }
  const files = { [INSTRUCTION_FILE]: instruction }
  if (agent === 'nop') return { command: NOTHING, env, files }
  if (agent !== 'oracle') return { command: agent.command, env, files }
  return {
    command: ['/bin/sh', '-c', RUN_SCRIPT, 'sh', `${SOLUTION}/${SOLUTION_SCRIPT}`],
    env: { ...env, DEBIAN_FRONTEND: 'noninteractive', ...solution?.env },
    files: { ...files, ...filesOf(solution?.files ?? [], SOLUTION) },
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

export function placeOf(
  { environment: { workdir } }: Pick<HarborTask, 'environment'>,
  { user }: HarborPhase,
): Pick<TaskOptions, 'cwd' | 'user'> {
  return {
    ...(workdir === undefined ? {} : { cwd: workdir }),
    ...(user === undefined ? {} : { user }),
  }
}

/** Scripts can be run, whatever they could on this machine. */
export function filesOf(
  files: HarborScript['files'],
  place: string,
): Record<string, BroughtContent> {
  return Object.fromEntries(
    files.map(({ name, path }) => [`${place}/${name}`, { path, mode: 0o755 }]),
  )
}
