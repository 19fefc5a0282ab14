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
import { tellNotes } from './tell-notes.ts'

export interface FolderOptions {
  readonly taskEnv?: readonly string[]
  readonly build?: boolean
  readonly allow?: readonly string[]
}

export interface TaskFolder extends HarborTask {
  digest(): Promise<string>
}

/** Reads them all before anything begins, and tells what of them has no meaning here. */
export async function readFolders(
  path: string,
  { taskEnv = [], build = false }: FolderOptions,
): Promise<readonly TaskFolder[]> {
  const tasks = await harborTasks(path, { env: pairs(taskEnv, '--task-env'), build })
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
  { allow }: FolderOptions,
): Promise<FolderProgram> {
  const open: NetworkPolicy = allow ? { allow: [...allow], packages: true } : 'packages'
  const { command, grade, each, content } = harborProgram(folders, { agent, open })
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
