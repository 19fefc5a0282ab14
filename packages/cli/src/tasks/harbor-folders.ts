/** Task folders in Harbor's format, as tasks of a run of programs. */
import {
  type HarborAgent,
  type HarborTask,
  harborDigest,
  harborProgram,
  harborTasks,
  type NetworkPolicy,
  type ProgramOptions,
} from 'sandlot'
import { pairs } from '../commands/options.ts'
import type { ProgramTask } from '../commands/program-tasks.ts'
import { Mistake } from '../failure.ts'
import { tellNotes } from './tell-notes.ts'

export interface FolderOptions {
  readonly taskEnv?: readonly string[]
  readonly build?: boolean
  readonly allow?: readonly string[]
  /** `clean` would show the tests nothing of the agent's. */
  readonly gradeIn?: 'world' | 'clean' | 'same'
}

export interface TaskFolder extends HarborTask {
  digest(): Promise<string>
}

/** Reads them all before anything begins, and tells what of them has no meaning here. */
export async function readFolders(
  paths: readonly string[],
  { taskEnv = [], build = false }: FolderOptions,
): Promise<readonly TaskFolder[]> {
  const tasks = await harborTasks(paths, { env: pairs(taskEnv, '--task-env'), build })
  tellNotes(tasks.flatMap(({ key, notes }) => notes.map((text) => ({ key, text }))))
  return tasks.map((task) => ({ ...task, digest: () => harborDigest(task) }))
}

export interface FolderProgram {
  readonly tasks: readonly ProgramTask[]
  /** What all of them have. */
  readonly run: Pick<ProgramOptions<unknown>, 'command' | 'grade'>
}

export async function folderProgram(
  folders: readonly TaskFolder[],
  agent: HarborAgent,
  { allow, gradeIn = 'world' }: FolderOptions,
): Promise<FolderProgram> {
  const open: NetworkPolicy = allow ? { allow: [...allow], packages: true } : 'packages'
  if (gradeIn === 'clean') {
    const hint = 'the tests of a task folder look at what the agent left: take world, or same'
    throw new Mistake('--grade-in clean has no place beside task folders', hint)
  }
  const options = { agent, open, in: gradeIn }
  const { command, grade, each, content } = harborProgram(folders, options)
  const tasks = folders.map(async (folder, index): Promise<ProgramTask> => {
    return {
      key: folder.key,
      content: { ...(content?.(folder, index) as object) },
      own: (await each?.(folder, index)) ?? {},
      trials: {},
      digest: () => folder.digest(),
    }
  })
  return { tasks: await Promise.all(tasks), run: { command, ...(grade ? { grade } : {}) } }
}
