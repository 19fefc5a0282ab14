/** Tasks and who does them → a run of programs: where the format has its files, and how it runs its scripts. */
import { type NetworkPolicy, type PhaseNetwork, SandlotError } from '@sandlot/protocol'
import type { BroughtContent, CommandGrade } from '../rollout/options.ts'
import type { ProgramOptions, TaskOptions } from '../rollout/program-options.ts'
import { INSTRUCTION, SETTINGS_FILE, SOLUTION_SCRIPT, TEST_SCRIPT } from './format.ts'
import { type HarborProblem, refusal } from './problems.ts'
import type { HarborNetwork, HarborPhase, HarborScript, HarborTask } from './task.ts'

/** `oracle` runs a task's own solution, `nop` does nothing, and a command finds in its environment what it is asked. */
export type HarborAgent = 'oracle' | 'nop' | { readonly command: string | readonly string[] }

export interface HarborProgramOptions {
  readonly agent: HarborAgent
  /** What a phase reaches to which the format gives the whole internet. Default: the package mirrors of the daemon's machine. */
  readonly open?: NetworkPolicy
}

/** The places of the format. */
const [TESTS, SOLUTION, VERDICTS] = ['/tests', '/solution', '/logs/verifier']
const REWARD_FILES = [`${VERDICTS}/reward.json`, `${VERDICTS}/reward.txt`]

/** Where a program finds what it is asked, and the variables that tell. */
export const INSTRUCTION_FILE = `/run/sandlot/${INSTRUCTION}`
const INSTRUCTION_ENV = { text: 'INSTRUCTION', file: 'INSTRUCTION_FILE' }
/** A longer text, or one that no variable can hold, is in the file alone. */
const INSTRUCTION_ENV_BYTES_MAX = 16 * 2 ** 10

/** A script without a first line that names its shell is run by bash where there is one. */
const RUN_SCRIPT = 'exec "$(command -v bash || echo /bin/sh)" -c "$1"'

/**
 * The options by which `client.rollouts.program` runs these tasks. More may be added: a name, how many at once.
 * @throws SandlotError `invalid_request` that names each task which is no program with one grader, or has no solution for the oracle
 */
export function harborProgram(
  tasks: readonly HarborTask[],
  { agent, open = 'packages' }: HarborProgramOptions,
): ProgramOptions<HarborTask> {
  const [first] = tasks
  if (!first) throw new SandlotError('invalid_request', 'there are no tasks')
  const problems = tasks.flatMap((task) => problemsOf(task, agent))
  if (problems.length > 0) throw refusal(problems, new Set(problems.map(({ file }) => file)).size)
  return {
    from: first.environment.image,
    key: ({ key }) => key,
    content: ({ key, name, instruction }) => ({ id: key, name, instruction }),
    command: nothing,
    grade: GRADE,
    each: (task) => ({
      from: task.environment.image,
      resources: task.environment.resources,
      network: networkOf(task, open),
      timeout: timeoutOf(task),
      ...placeOf(task, task.agent),
      ...agentCommand(task, agent),
      grade: gradeOf(task),
    }),
  }
}

const nothing = ['/bin/sh', '-c', ':']

const GRADE: CommandGrade = {
  in: 'world',
  // What an agent put there must not be taken for a test or a verdict.
  clear: [TESTS, VERDICTS],
  run: ['/bin/sh', '-c', `mkdir -p ${VERDICTS} && ${RUN_SCRIPT}`, 'sh', `${TESTS}/${TEST_SCRIPT}`],
  reward: { file: REWARD_FILES },
}

function problemsOf(task: HarborTask, agent: HarborAgent): HarborProblem[] {
  const { key, steps, verifier, solution } = task
  const problems: HarborProblem[] = []
  const file = `${key}/${SETTINGS_FILE}`
  if (steps) {
    problems.push({ file, field: 'steps', problem: 'tasks of several steps are not run yet' })
  }
  if (verifier?.separate) {
    const problem = 'a verifier in an environment of its own is not run yet'
    problems.push({ file, field: 'verifier.environment', problem })
  }
  if (agent === 'oracle' && !solution && !steps) {
    problems.push({
      file: `${key}/solution/${SOLUTION_SCRIPT}`,
      problem: 'is missing: the oracle has nothing to run',
    })
  }
  return problems
}

function gradeOf({
  environment,
  verifier,
  ...task
}: HarborTask): NonNullable<TaskOptions['grade']> {
  return {
    ...placeOf({ environment, ...task }, verifier ?? {}),
    env: { ...environment.env, ...verifier?.env },
    files: filesOf(verifier?.files ?? [], TESTS),
  }
}

function agentCommand(
  { instruction, environment, solution }: HarborTask,
  agent: HarborAgent,
): Pick<TaskOptions, 'command' | 'env' | 'files'> {
  const env = { ...environment.env, ...instructionEnv(instruction) }
  const files = { [INSTRUCTION_FILE]: instruction }
  if (agent === 'nop') return { command: nothing, env, files }
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

function timeoutOf({ agent, verifier }: HarborTask): NonNullable<TaskOptions['timeout']> {
  return {
    ...(agent.timeoutMs === undefined ? {} : { agent: agent.timeoutMs }),
    ...(verifier === undefined ? {} : { grade: verifier.timeoutMs }),
  }
}

function placeOf(
  { environment: { workdir } }: Pick<HarborTask, 'environment'>,
  { user }: HarborPhase,
): Pick<TaskOptions, 'cwd' | 'user'> {
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
function filesOf(files: HarborScript['files'], place: string): Record<string, BroughtContent> {
  return Object.fromEntries(
    files.map(({ name, path }) => [`${place}/${name}`, { path, mode: 0o755 }]),
  )
}
