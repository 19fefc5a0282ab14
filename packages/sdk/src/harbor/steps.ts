/** The `[[steps]]` of a task, each with a folder of its own. */
import { NO_HEALTHCHECK } from './environment.ts'
import { INSTRUCTION, SETTINGS_FILE, TEST_SCRIPT } from './format.ts'
import { instructionOf } from './instruction.ts'
import { solutionOf, type TaskReading } from './read-task.ts'
import type { StepSettings } from './settings.ts'
import type { HarborStep, HarborSteps } from './task.ts'
import { phaseOf, verifierOf } from './verifier.ts'

export async function stepsOf(
  reading: TaskReading,
  steps: readonly StepSettings[],
): Promise<HarborSteps> {
  const names = new Set<string>()
  const list: HarborStep[] = []
  for (const [index, step] of steps.entries()) {
    if (names.has(step.name)) {
      reading.problems.add(SETTINGS_FILE, `${step.name} is there already`, `steps[${index}].name`)
      continue
    }
    names.add(step.name)
    list.push(await stepOf(reading, step, index))
  }
  return { list, reward: reading.settings.multi_step_reward_strategy ?? 'mean' }
}

async function stepOf(
  reading: TaskReading,
  step: StepSettings,
  index: number,
): Promise<HarborStep> {
  const { folder, problems, settings: all } = reading
  const [at, own] = [`steps[${index}]`, `steps/${step.name}`]
  if (step.healthcheck !== undefined)
    problems.add(SETTINGS_FILE, NO_HEALTHCHECK, `${at}.healthcheck`)
  const text = await folder.text(`${own}/${INSTRUCTION}`)
  const hasTests = await folder.has(`${own}/tests/${TEST_SCRIPT}`)
  const verifier = await verifierOf(reading, {
    settings: inherited(step.verifier, all.verifier),
    at: `${at}.verifier`,
    // Where a step has no script of its own, that of the task is run.
    folders: hasTests ? ['tests', `${own}/tests`] : [`${own}/tests`, 'tests'],
    artifacts: [...all.artifacts, ...step.artifacts],
    artifactsAt: `${at}.artifacts`,
  })
  const solution = await solutionOf(reading, `${own}/solution`)
  return {
    name: step.name,
    instruction: instructionOf(text ?? ''),
    agent: phaseOf(reading, { ...all.agent, ...given(step.agent) }, `${at}.agent`),
    verifier,
    ...(solution === undefined ? {} : { solution }),
    workdir: await folder.files(`${own}/workdir`),
    minReward:
      typeof step.min_reward === 'number' ? { reward: step.min_reward } : (step.min_reward ?? {}),
  }
}

/** What a step doesn't say is the task's; its time for grading is its own. */
function inherited(step: StepSettings['verifier'], task: StepSettings['verifier']) {
  const { timeout_sec: _, ...rest } = task
  return { ...rest, ...given(step), env: { ...task.env, ...step.env } }
}

function given<T extends object>(settings: T): T {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as T
}
