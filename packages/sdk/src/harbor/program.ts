/** Tasks and who does them → a run of programs, which needs no client. */
import { type NetworkPolicy, type PhaseNetwork, SandlotError } from '@sandlot/protocol'
import type { CommandGrade } from '../rollout/options.ts'
import type { ProgramOptions, TaskOptions } from '../rollout/program-options.ts'
import { SETTINGS_FILE, SOLUTION_SCRIPT } from './format.ts'
import { graderOf } from './grader.ts'
import { policyOf } from './network.ts'
import {
  agentCommand,
  GRADE_COMMAND,
  type HarborAgent,
  NOTHING,
  placeOf,
  REWARD_FILES,
  TESTS,
  VERDICTS,
} from './places.ts'
import { type HarborProblem, refusal } from './problems.ts'
import { largestResources } from './resources.ts'
import { programSteps } from './stepped.ts'
import type { HarborPhase, HarborScript, HarborTask, HarborVerifier } from './task.ts'

export interface HarborProgramOptions {
  readonly agent: HarborAgent
  /** What a phase reaches to which the format gives the whole internet. Default: the package mirrors of the daemon's machine. */
  readonly open?: NetworkPolicy
  /**
   * `world` (default): the agent's processes have ended when its tests begin. `same`: they look at servers that it left running, as the
   * format has it, and a process of ill will can deceive them. Of a task in several steps the last one alone: what an agent left running
   * lives on from step to step, and while those before are graded.
   */
  readonly in?: 'world' | 'same'
}

/**
 * The options by which `client.rollouts.program` runs these tasks. More may be added: a name, how many at once. A task without a solution
 * is in quarantine where the oracle does them: its row is `task_invalid`.
 * @throws SandlotError `invalid_request` that names each task which can't be run
 */
export function harborProgram(
  tasks: readonly HarborTask[],
  { agent, open = 'packages', in: place = 'world' }: HarborProgramOptions,
): ProgramOptions<HarborTask> {
  const [first] = tasks
  if (!first) throw new SandlotError('invalid_request', 'there are no tasks')
  const problems = tasks.flatMap((task) => problemsOf(task, open))
  if (problems.length > 0) throw refusal(problems, new Set(problems.map(({ file }) => file)).size)
  return {
    from: first.environment.image,
    key: ({ key }) => key,
    content: ({ key, name, instruction }) => ({ id: key, name, instruction }),
    command: NOTHING,
    grade: { ...GRADE, in: place },
    each: (task) => {
      const missing = agent === 'oracle' ? missingSolution(task) : undefined
      return missing === undefined ? optionsOf(task, { agent, open }) : { quarantine: missing }
    },
  }
}

const GRADE: CommandGrade = {
  // What an agent put there must not be taken for a test or a verdict.
  clear: [TESTS, VERDICTS],
  run: GRADE_COMMAND,
  reward: { file: REWARD_FILES },
}

function optionsOf(
  task: HarborTask,
  { agent, open }: { readonly agent: HarborAgent; readonly open: NetworkPolicy },
): TaskOptions {
  const parts = partsOf(task)
  const last = parts.at(-1)?.verifier
  const elsewhere = parts.flatMap(({ verifier }) => verifier?.separate?.environment ?? [])
  return {
    from: task.environment.image,
    resources: largestResources([task.environment, ...elsewhere].map(({ resources }) => resources)),
    network: networkOf(task, open),
    timeout: {
      ...(task.agent.timeoutMs === undefined ? {} : { agent: task.agent.timeoutMs }),
      ...(last === undefined ? {} : { grade: last.timeoutMs }),
    },
    ...(task.steps
      ? { steps: programSteps(task, task.steps.list, agent), rewards: task.steps.reward }
      : { ...placeOf(task, task.agent), ...agentCommand(task, agent) }),
    ...(last === undefined ? {} : { grade: graderOf(task, last) }),
  }
}

interface Part {
  /** Its folder below that of the task. */
  readonly folder: string
  readonly agent: HarborPhase
  readonly verifier?: HarborVerifier
  readonly solution?: HarborScript
}

/** A task without steps is one of a single step. */
function partsOf(task: HarborTask): readonly Part[] {
  if (!task.steps) return [{ ...task, folder: '' }]
  return task.steps.list.map((step) => ({ ...step, folder: `steps/${step.name}/` }))
}

/** Why the oracle can't do a task, or undefined. */
function missingSolution(task: HarborTask): string | undefined {
  const missing = partsOf(task).filter(({ solution }) => !solution)
  if (missing.length === 0) return undefined
  const files = missing.map(({ folder }) => `${folder}solution/${SOLUTION_SCRIPT}`)
  return `${files.join(', ')} is missing: the oracle has nothing to run`
}

function problemsOf(task: HarborTask, open: NetworkPolicy): HarborProblem[] {
  const file = `${task.key}/${SETTINGS_FILE}`
  const { agents, verifiers } = networksOf(task, open)
  const problems: HarborProblem[] = []
  for (const [who, policies] of [
    ['agents', agents],
    ['verifiers', verifiers],
  ] as const) {
    if (new Set(policies.map((policy) => JSON.stringify(policy))).size < 2) continue
    const problem = `steps whose ${who} reach different things are not supported`
    problems.push({ file, field: 'network_mode', problem })
  }
  for (const { verifier } of partsOf(task)) {
    if (verifier?.separate?.artifacts.some(({ exclude }) => exclude.length > 0)) {
      problems.push({ file, field: 'artifacts', problem: 'exclude is not supported' })
    }
  }
  return problems
}

function networksOf(task: HarborTask, open: NetworkPolicy) {
  const { network } = task.environment
  const parts = partsOf(task)
  return {
    agents: parts.map(({ agent }) => policyOf(agent.network ?? network, open)),
    verifiers: parts.flatMap(({ verifier }) => {
      const own = verifier?.separate?.environment.network ?? network
      return verifier ? [policyOf(verifier.network ?? own, open)] : []
    }),
  }
}

function networkOf(task: HarborTask, open: NetworkPolicy): PhaseNetwork {
  const { agents, verifiers } = networksOf(task, open)
  return { agent: agents[0] ?? 'none', grade: verifiers[0] ?? 'none' }
}
