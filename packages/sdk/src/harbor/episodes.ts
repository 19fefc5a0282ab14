/** Tasks of any kind as episodes of a worker: those of several steps, and with verifiers in an environment of their own. */
import { type NetworkPolicy, SandlotError, TIMEOUT_DEFAULTS_MS } from '@sandlot/protocol'
import type { Episode } from '../rollout/episode.ts'
import type { MapOptions } from '../rollout/options.ts'
import type { Sandboxes } from '../sandbox/sandboxes.ts'
import { SETTINGS_FILE } from './format.ts'
import { policyOf } from './network.ts'
import type { HarborAgent } from './places.ts'
import { type HarborProblem, refusal } from './problems.ts'
import { missingSolution } from './program.ts'
import { combineRewards, fallsShort, type Rewards } from './rewards.ts'
import { runStep } from './run-step.ts'
import type { HarborStep, HarborTask } from './task.ts'

export interface HarborEpisodesOptions {
  readonly agent: HarborAgent
  /** Verifiers in an environment of their own get sandboxes of it. */
  readonly client: { readonly sandboxes: Pick<Sandboxes, 'create'> }
  /** What a phase reaches to which the format gives the whole internet. Default: the package mirrors of the daemon's machine. */
  readonly open?: NetworkPolicy
}

export interface HarborEpisodeTask {
  readonly id: string
  readonly name?: string
}

export interface HarborEpisodes {
  readonly tasks: readonly HarborEpisodeTask[]
  readonly episode: Episode<HarborEpisodeTask>
  readonly options: MapOptions<HarborEpisodeTask>
}

/** For the making of a sandbox in which only a verifier works. */
const SEPARATE_MS = 60_000

/**
 * What `client.rollouts.map` needs to run these tasks. The verifier of a step runs beside what the agent left running, as the format has it:
 * tasks of one step without an environment for the verifier are better off as programs (`harborProgram`).
 * @throws SandlotError `invalid_request` that names each task which can't be run
 */
export function harborEpisodes(
  tasks: readonly HarborTask[],
  { agent, client, open = 'packages' }: HarborEpisodesOptions,
): HarborEpisodes {
  const [first] = tasks
  if (!first) throw new SandlotError('invalid_request', 'there are no tasks')
  const problems = tasks.flatMap((task) => problemsOf(task, agent, open))
  if (problems.length > 0) throw refusal(problems, new Set(problems.map(({ file }) => file)).size)
  const byKey = new Map(tasks.map((task) => [task.key, task]))
  const taskOf = ({ id }: HarborEpisodeTask) => {
    const task = byKey.get(id)
    if (task) return task
    // Of a run that was begun with other folders: it is not to be done by another one's tests.
    throw new SandlotError('invalid_request', `no folder was read for the task ${id}`, {
      hint: 'Read the same folders for all workers of a run.',
    })
  }
  return {
    tasks: tasks.map(({ key, name }) => ({ id: key, ...(name === undefined ? {} : { name }) })),
    async episode({ task: { id }, sandbox, signal }) {
      const task = taskOf({ id })
      const given: { name: string; rewards: Rewards }[] = []
      for (const step of stepsOf(task)) {
        const { sandboxes } = client
        const rewards = await runStep({ task, step, agent, open, sandbox, sandboxes, signal })
        given.push({ name: step.name, rewards })
        if (fallsShort(rewards, step.minReward)) break
      }
      const all = given.map(({ rewards }) => rewards)
      const rewards = combineRewards(all, task.steps?.reward ?? 'final')
      const { reward } = rewards
      return {
        rewards,
        ...(reward === undefined ? {} : { reward }),
        ...(task.steps ? { data: { steps: given } } : {}),
      }
    },
    options: {
      from: first.environment.image,
      // Agents and verifiers have their own deadlines in it: what goes beyond is no doing of a policy.
      policy: { agent_timeout: 'mask' },
      each: (each) => {
        const task = taskOf(each)
        const { image, resources } = task.environment
        const network = policyOf(agentNetwork(task, stepsOf(task)[0]), open)
        return {
          from: image,
          resources,
          network: { agent: network },
          timeout: { agent: timeOf(task) },
        }
      },
    },
  }
}

/** A task without steps is one of a single step. */
function stepsOf(task: HarborTask): readonly HarborStep[] {
  if (task.steps) return task.steps.list
  const { instruction, agent, verifier, solution } = task
  if (!verifier) return []
  const more = solution === undefined ? {} : { solution }
  return [{ name: '', instruction, agent, verifier, ...more, workdir: [], minReward: {} }]
}

/** All of its phases are the agent's to the platform. */
function timeOf(task: HarborTask): number {
  const times = stepsOf(task).map(({ agent, verifier }) => {
    const elsewhere = verifier.separate ? SEPARATE_MS : 0
    return (agent.timeoutMs ?? TIMEOUT_DEFAULTS_MS.agent) + verifier.timeoutMs + elsewhere
  })
  return times.reduce((sum, time) => sum + time, SEPARATE_MS)
}

function agentNetwork({ environment }: HarborTask, step: HarborStep | undefined) {
  return step?.agent.network ?? environment.network
}

function problemsOf(task: HarborTask, agent: HarborAgent, open: NetworkPolicy): HarborProblem[] {
  const file = `${task.key}/${SETTINGS_FILE}`
  const steps = stepsOf(task)
  const parts = steps.map(({ name, solution }) => ({
    folder: name === '' ? '' : `steps/${name}/`,
    solution,
  }))
  const problems = agent === 'oracle' ? missingSolution(task, parts) : []
  const networks = steps.flatMap((step) => [
    agentNetwork(task, step),
    ...(step.verifier.separate ? [] : [step.verifier.network ?? task.environment.network]),
  ])
  if (new Set(networks.map((network) => JSON.stringify(policyOf(network, open)))).size > 1) {
    const problem =
      'steps, or a verifier beside its agent, that reach different things are not supported'
    problems.push({ file, field: 'network_mode', problem })
  }
  for (const { verifier } of steps) {
    if (verifier.separate?.artifacts.every(({ exclude }) => exclude.length === 0) === false) {
      problems.push({ file, field: 'artifacts', problem: 'exclude is not supported' })
    }
  }
  return problems
}
