/** Tasks and who does them → a run of programs, which needs no client. */
import { type NetworkPolicy, type PhaseNetwork, SandlotError } from '@sandlot/protocol'
import type { CommandGrade } from '../rollout/options.ts'
import type { ProgramOptions, TaskOptions } from '../rollout/program-options.ts'
import { SETTINGS_FILE, SOLUTION_SCRIPT } from './format.ts'
import { policyOf } from './network.ts'
import {
  agentCommand,
  filesOf,
  GRADE_COMMAND,
  type HarborAgent,
  NOTHING,
  placeOf,
  REWARD_FILES,
  TESTS,
  VERDICTS,
} from './places.ts'
import { type HarborProblem, refusal } from './problems.ts'
import type { HarborScript, HarborTask } from './task.ts'

export interface HarborProgramOptions {
  readonly agent: HarborAgent
  /** What a phase reaches to which the format gives the whole internet. Default: the package mirrors of the daemon's machine. */
  readonly open?: NetworkPolicy
  /**
   * `world` (default): the agent's processes have ended when its tests begin. `same`: they look at servers that it left running, as the
   * format has it, and a process of ill will can deceive them.
   */
  readonly in?: 'world' | 'same'
}

/**
 * The options by which `client.rollouts.program` runs these tasks. More may be added: a name, how many at once.
 * @throws SandlotError `invalid_request` that names each task which is no program with one grader, or has no solution for the oracle
 */
export function harborProgram(
  tasks: readonly HarborTask[],
  { agent, open = 'packages', in: place = 'world' }: HarborProgramOptions,
): ProgramOptions<HarborTask> {
  const [first] = tasks
  if (!first) throw new SandlotError('invalid_request', 'there are no tasks')
  const problems = tasks.flatMap((task) => problemsOf(task, agent))
  if (problems.length > 0) throw refusal(problems, new Set(problems.map(({ file }) => file)).size)
  return {
    from: first.environment.image,
    key: ({ key }) => key,
    content: ({ key, name, instruction }) => ({ id: key, name, instruction }),
    command: NOTHING,
    grade: { ...GRADE, in: place },
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

const GRADE: CommandGrade = {
  // What an agent put there must not be taken for a test or a verdict.
  clear: [TESTS, VERDICTS],
  run: GRADE_COMMAND,
  reward: { file: REWARD_FILES },
}

function problemsOf(task: HarborTask, agent: HarborAgent): HarborProblem[] {
  const { key, steps, verifier, solution } = task
  const file = `${key}/${SETTINGS_FILE}`
  const elsewhere =
    'is for a worker of yours (harborEpisodes): the daemon alone runs one program and one grader'
  return [
    ...(steps ? [{ file, field: 'steps', problem: `a task of several steps ${elsewhere}` }] : []),
    ...(verifier?.separate
      ? [
          {
            ...{ file, field: 'verifier.environment' },
            problem: `a verifier in an environment of its own ${elsewhere}`,
          },
        ]
      : []),
    ...(agent === 'oracle' && !steps ? missingSolution(task, [{ folder: '', solution }]) : []),
  ]
}

/** Of a task, or of its steps. */
export function missingSolution(
  { key }: HarborTask,
  parts: readonly { readonly folder: string; readonly solution?: HarborScript | undefined }[],
): HarborProblem[] {
  const problem = 'is missing: the oracle has nothing to run'
  return parts
    .filter(({ solution }) => !solution)
    .map(({ folder }) => ({ file: `${key}/${folder}solution/${SOLUTION_SCRIPT}`, problem }))
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

function timeoutOf({ agent, verifier }: HarborTask): NonNullable<TaskOptions['timeout']> {
  return {
    ...(agent.timeoutMs === undefined ? {} : { agent: agent.timeoutMs }),
    ...(verifier === undefined ? {} : { grade: verifier.timeoutMs }),
  }
}

function networkOf(
  { environment, agent, verifier }: HarborTask,
  open: NetworkPolicy,
): PhaseNetwork {
  const { network } = environment
  return {
    agent: policyOf(agent.network ?? network, open),
    grade: policyOf(verifier?.network ?? network, open),
  }
}
