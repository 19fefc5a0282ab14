import { type AttemptAddress, attemptInProgress, episodeId, type Run } from '@sandlot/core'
import { PROGRAM_ENV, TASK_FILE } from '@sandlot/protocol'
import type { PutFile } from '../../node/port.ts'
import type { TaskStore } from '../task-store.ts'

/** What a program is told of its episode by its environment; its grade command is told the same. */
export function toldOf(run: Run, name: string, of: AttemptAddress): Record<string, string> {
  const episode = attemptInProgress(run, of)
  if (!episode?.current) return {}
  const { index, key, group, member, attempt, seed, current } = episode
  return {
    [PROGRAM_ENV.taskFile]: TASK_FILE,
    [PROGRAM_ENV.run]: name,
    [PROGRAM_ENV.episode]: episodeId(run.policy.run, index),
    [PROGRAM_ENV.key]: variable(key),
    [PROGRAM_ENV.group]: variable(group ?? key),
    [PROGRAM_ENV.member]: String(member),
    [PROGRAM_ENV.attempt]: String(attempt),
    [PROGRAM_ENV.seed]: String(seed),
    [PROGRAM_ENV.policyVersion]: String(current.policyVersion),
  }
}

/** The task as the file in which a program finds it; everybody in the sandbox may read it. */
export async function taskFile(
  tasks: TaskStore,
  carried: { readonly taskJson: string | null; readonly taskBlob: string | null },
): Promise<PutFile> {
  const { taskJson, taskBlob } = await tasks.load(carried)
  const file = { path: TASK_FILE, mode: 0o644 }
  if (taskJson !== null) return { ...file, bytes: Buffer.from(taskJson) }
  return { ...file, blob: taskBlob as string }
}

/** No variable holds a NUL. */
function variable(text: string): string {
  return text.replaceAll('\0', '\ufffd')
}
