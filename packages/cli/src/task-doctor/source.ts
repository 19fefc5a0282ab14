/** Where tasks to be examined come from, whatever their format. */
import { TIMEOUT_DEFAULTS_MS, timeouts } from '@sandlot/protocol'
import type { ProgramOptions, TaskOptions } from 'sandlot'
import { folderOptions, programOptions, type StartRunOptions } from '../commands/program-options.ts'
import { type ProgramTask, readProgramTasks } from '../commands/program-tasks.ts'
import { folderProgram, readFolders, type TaskFolder } from '../tasks/harbor-folders.ts'
import type { TrialRole } from './trial.ts'

export interface DoctorTask {
  readonly key: string
  readonly timeoutMs: number
  /** Who can be tried: without a gold solution `null` alone. */
  readonly roles: readonly TrialRole[]
  /** What is run in its sandboxes, and what those may use. */
  readonly options: Readonly<Record<TrialRole, TaskOptions>>
  /** What the programs are told of it. */
  readonly content: unknown
  digest(): Promise<string>
}

export interface DoctorSource {
  readonly tasks: readonly DoctorTask[]
  /** What all of its tasks have. */
  readonly run: Omit<ProgramOptions<unknown>, 'from' | 'key' | 'content' | 'each'>
}

const NOTHING = ['/bin/sh', '-c', ':']

/** Folders in Harbor's format: the oracle is gold, and who does nothing is null. */
export async function folderSource(path: string, options: StartRunOptions): Promise<DoctorSource> {
  const shared = sharedOf(folderOptions(options))
  const folders = await readFolders([path], options)
  const none = await folderProgram(folders, 'nop', options)
  const gold = await folderProgram(folders, 'oracle', options)
  return {
    run: { ...shared, ...none.run },
    tasks: none.tasks.map((task, index) => {
      const solved = gold.tasks[index]?.own ?? task.own
      return {
        ...task,
        timeoutMs: agentMs(folders[index]),
        // Nobody can do one without a solution.
        roles: solved.quarantine === undefined ? ['gold', 'null'] : ['null'],
        options: { gold: solved, null: task.own },
      }
    }),
  }
}

/** Of steps, all that their agents and the verifiers between them may take. */
function agentMs(folder: TaskFolder | undefined): number {
  const parts = folder?.steps?.list ?? [{ agent: folder?.agent ?? {} }]
  return parts.reduce((sum, part, index) => {
    const isGraded = index < parts.length - 1 && 'verifier' in part
    const gradeMs = isGraded ? part.verifier.timeoutMs : 0
    return sum + (part.agent.timeoutMs ?? TIMEOUT_DEFAULTS_MS.agent) + gradeMs
  }, 0)
}

/** One JSON object a line, with commands for both. */
export async function fileSource(file: string, options: StartRunOptions): Promise<DoctorSource> {
  const tasks = await readProgramTasks(file)
  const wanted = programOptions(tasks, { ...options, command: NOTHING.join(' ') })
  const { from } = wanted
  return {
    run: { ...sharedOf(wanted), command: NOTHING },
    tasks: tasks.map((task) => ({
      ...{ key: task.key, content: task.content, digest: () => task.digest() },
      timeoutMs: timeoutOf(task, wanted),
      roles: task.trials.gold === undefined ? ['null'] : ['gold', 'null'],
      options: {
        gold: { from, ...task.own, command: task.trials.gold ?? NOTHING },
        null: { from, ...task.own, command: task.trials.null ?? NOTHING },
      },
    })),
  }
}

/** Without what speaks of tasks: a trial is none. */
function sharedOf<T extends Partial<ProgramOptions<ProgramTask>>>(options: T) {
  const {
    from: _,
    key: __,
    content: ___,
    each: ____,
    expected: _____,
    group: ______,
    ...run
  } = options
  return run
}

function timeoutOf({ own }: ProgramTask, run: Pick<ProgramOptions<never>, 'timeout'>): number {
  const { agent } = timeouts.parse({ ...run.timeout, ...own.timeout })
  return agent ?? TIMEOUT_DEFAULTS_MS.agent
}
