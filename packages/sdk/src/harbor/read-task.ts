/** One task folder, read. */
import { environmentOf } from './environment.ts'
import { TaskFolder } from './folder-files.ts'
import { INSTRUCTION, SETTINGS_FILE, SOLUTION_SCRIPT } from './format.ts'
import { instructionOf } from './instruction.ts'
import { parseSettings } from './parse-settings.ts'
import type { Problems } from './problems.ts'
import type { Settings } from './settings.ts'
import { stepsOf } from './steps.ts'
import type { HarborScript, HarborTask } from './task.ts'
import { resolveVariables } from './variables.ts'
import { phaseOf, verifierOf } from './verifier.ts'

/** What all parts of one folder's reading know. */
export interface TaskReading {
  readonly folder: TaskFolder
  readonly settings: Settings
  readonly given: Readonly<Record<string, string>>
  readonly build: boolean
  readonly problems: Problems
}

export interface ReadOptions {
  /** Values for variables that tasks take from whoever runs them. */
  readonly env: Readonly<Record<string, string>>
  readonly build: boolean
}

/** The task, or nothing and what is wrong. */
export async function readTask(
  directory: string,
  key: string,
  { env, build, problems }: ReadOptions & { readonly problems: Problems },
): Promise<HarborTask | undefined> {
  const folder = new TaskFolder(directory, problems)
  const text = await folder.text(SETTINGS_FILE)
  const parsed = text === undefined ? undefined : parseSettings(text, problems)
  if (parsed === undefined) return undefined
  const { settings, notes } = parsed
  const reading: TaskReading = { folder, settings, given: env, build, problems }
  const environment = await environmentOf({
    ...reading,
    settings: settings.environment,
    at: 'environment',
    context: 'environment',
    placesFiles: true,
  })
  const work = settings.steps?.length
    ? { instruction: '', steps: await stepsOf(reading, settings.steps) }
    : { instruction: instructionOf((await folder.text(INSTRUCTION)) ?? '') }
  const verifier = settings.steps?.length ? undefined : await taskVerifier(reading)
  const agent = phaseOf(reading, settings.agent, 'agent')
  const solution = await solutionOf(reading, 'solution')
  if (problems.list.length > 0 || environment === undefined) return undefined
  return {
    key,
    directory,
    ...(settings.task?.name === undefined ? {} : { name: settings.task.name }),
    ...work,
    environment,
    agent,
    ...(verifier === undefined ? {} : { verifier }),
    ...(solution === undefined ? {} : { solution }),
    notes,
  }
}

/** Undefined where nothing solves the task. */
export async function solutionOf(
  { folder, settings, given, problems }: TaskReading,
  name: string,
): Promise<HarborScript | undefined> {
  if (!(await folder.has(`${name}/${SOLUTION_SCRIPT}`))) return undefined
  return {
    files: await folder.files(name),
    env: resolveVariables(settings.solution.env, { at: 'solution.env', given, problems }),
  }
}

async function taskVerifier(reading: TaskReading) {
  const { settings } = reading
  return await verifierOf(reading, {
    settings: settings.verifier,
    at: 'verifier',
    folders: ['tests'],
    artifacts: settings.artifacts,
    artifactsAt: 'artifacts',
  })
}
