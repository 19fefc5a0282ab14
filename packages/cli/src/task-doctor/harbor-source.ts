import {
  type HarborTask,
  harborDigest,
  harborProgram,
  harborTasks,
  type NetworkPolicy,
  type ProgramOptions,
} from 'sandlot'
import type { DoctorSource, DoctorTask } from './source.ts'
import type { TrialRole } from './trial.ts'

export interface HarborSourceOptions {
  readonly env: Readonly<Record<string, string>>
  readonly build: boolean
  readonly open: NetworkPolicy
}

/** Folders in Harbor's format: the oracle is gold, and who does nothing is null. */
export async function harborSource(
  path: string,
  { env, build, open }: HarborSourceOptions,
): Promise<DoctorSource> {
  const tasks = await harborTasks(path, { env, build })
  const none = harborProgram(tasks, { agent: 'nop', open })
  const solved = tasks.filter(({ solution }) => solution)
  const gold = solved.length > 0 ? harborProgram(solved, { agent: 'oracle', open }) : none
  const { command, grade } = none
  return {
    tasks: await Promise.all(tasks.map((task) => taskOf(task, { gold, null: none }))),
    run: { command, ...(grade ? { grade } : {}) },
    notes: tasks.flatMap(({ key, notes }) => notes.map((text) => ({ key, text }))),
  }
}

async function taskOf(
  task: HarborTask,
  by: Readonly<Record<TrialRole, ProgramOptions<HarborTask>>>,
): Promise<DoctorTask> {
  return {
    key: task.key,
    digest: await harborDigest(task),
    timeoutMs: task.agent.timeoutMs,
    from: task.environment.image,
    roles: task.solution ? ['gold', 'null'] : ['null'],
    options: async (role) => (await by[role].each?.(task, 0)) ?? {},
    content: by.null.content?.(task, 0),
  }
}
