/** `sandlot doctor tasks`: which tasks say nothing of who does them, found out by those whose result is known beforehand. */
import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { describeDiagnoses } from '../task-doctor/describe.ts'
import { type Diagnosis, diagnose, isSound } from '../task-doctor/diagnose.ts'
import { quarantineOf } from '../task-doctor/quarantine.ts'
import { runTrials } from '../task-doctor/run-trials.ts'
import {
  type DoctorSource,
  type DoctorTask,
  fileSource,
  folderSource,
} from '../task-doctor/source.ts'
import type { FolderOptions } from '../tasks/harbor-folders.ts'
import { interruption } from './interruption.ts'
import type { StartRunOptions } from './program-options.ts'

export interface DoctorTasksOptions extends FolderOptions, StartRunOptions {
  readonly times: number
  readonly pass: number
  readonly rewardName?: string
  readonly write?: string
  readonly json?: boolean
}

/** Exit code 1 when something is wrong with a task, or could not be told. */
export async function doctorTasksCommand(
  paths: readonly string[],
  options: DoctorTasksOptions,
): Promise<number> {
  const { times, concurrency, rewardName, pass, write, json } = options
  const sources = await sourcesOf(paths, options)
  const tasks = sources.flatMap((source) => source.tasks)
  refuseDoubles(tasks)
  await using client = new Sandlot()
  using interrupted = interruption()
  const runs: string[] = []
  const diagnoses: Diagnosis[] = []
  for (const source of sources) {
    const { run, trials } = await runTrials(client, source, {
      times,
      ...(concurrency === undefined ? {} : { concurrency }),
      pass: { reward: pass, ...(rewardName === undefined ? {} : { name: rewardName }) },
      signal: interrupted.signal,
    })
    if (run !== undefined) runs.push(run)
    diagnoses.push(...trials.map(diagnose))
  }
  if (write !== undefined) await writeQuarantine(write, tasks, diagnoses, times)
  if (json) printJson({ runs, times, tasks: diagnoses })
  else printLine(describeDiagnoses(diagnoses))
  for (const run of runs) {
    note(`the trials are episodes of ${run}: \`sandlot episode ${run} TASK/gold/1\` tells of one`)
  }
  return diagnoses.every(isSound) ? 0 : 1
}

async function sourcesOf(
  paths: readonly string[],
  options: DoctorTasksOptions,
): Promise<readonly DoctorSource[]> {
  const sources: DoctorSource[] = []
  for (const path of paths) {
    sources.push(
      isDirectory(path) ? await folderSource(path, options) : await fileSource(path, options),
    )
  }
  return sources
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function refuseDoubles(tasks: readonly DoctorTask[]): void {
  const keys = new Set<string>()
  for (const { key } of tasks) {
    if (keys.has(key)) {
      throw new Mistake(`two tasks are called ${key}`, 'Examine their folders one after the other.')
    }
    keys.add(key)
  }
}

async function writeQuarantine(
  path: string,
  tasks: readonly DoctorTask[],
  diagnoses: readonly Diagnosis[],
  times: number,
): Promise<void> {
  const digests = new Map<string, string>()
  for (const { key, digest } of tasks) digests.set(key, await digest())
  const list = quarantineOf(diagnoses, {
    times,
    madeAt: new Date().toISOString(),
    digestOf: (key) => digests.get(key) ?? '',
  })
  await writeFile(path, `${JSON.stringify(list, null, 2)}\n`)
  const count = list.tasks.length
  note(`${count} ${count === 1 ? 'task is' : 'tasks are'} in quarantine: ${path}`)
}
