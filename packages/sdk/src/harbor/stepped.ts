/** Steps of a task → steps of a program. */
import type { ProgramStep } from '../rollout/program-options.ts'
import { graderOf } from './grader.ts'
import {
  agentCommand,
  filesOf,
  type HarborAgent,
  NOTHING,
  placeOf,
  REWARD_FILES,
} from './places.ts'
import type { HarborStep, HarborTask } from './task.ts'

const SETUP_SCRIPT = 'setup.sh'

/** Each but the last with its verifier; that of the last is the task's own. */
export function programSteps(
  task: HarborTask,
  steps: readonly HarborStep[],
  agent: HarborAgent,
): readonly ProgramStep[] {
  return steps.map((step, index) => ({
    ...stepOf(task, step, agent),
    ...(index === steps.length - 1 ? {} : gradeOf(task, step)),
  }))
}

function stepOf(task: HarborTask, step: HarborStep, agent: HarborAgent): ProgramStep {
  const { command = NOTHING, env = {}, files = {} } = agentCommand({ ...task, ...step }, agent)
  const { workdir, agent: phase } = step
  // The working directory is perhaps the image's: only what runs there knows it.
  const given = `/run/sandlot/steps/${step.name}`
  return {
    ...placeOf(task, phase),
    ...{ name: step.name, run: command, env },
    files: { ...files, ...filesOf(workdir, given) },
    ...(workdir.length === 0 ? {} : { prepare: ['/bin/sh', '-c', PREPARE, 'sh', given] }),
    ...(phase.timeoutMs === undefined ? {} : { timeout: phase.timeoutMs }),
  }
}

const PREPARE = `cp -R "$1"/. . && { [ ! -f "$1/${SETUP_SCRIPT}" ] ||
exec "$(command -v bash || echo /bin/sh)" ${SETUP_SCRIPT}; }`

function gradeOf(
  task: HarborTask,
  { verifier, minReward }: HarborStep,
): Pick<ProgramStep, 'grade' | 'least'> {
  return {
    grade: {
      ...graderOf(task, verifier),
      reward: { file: REWARD_FILES },
      timeout: verifier.timeoutMs,
    },
    ...(Object.keys(minReward).length === 0 ? {} : { least: minReward }),
  }
}
