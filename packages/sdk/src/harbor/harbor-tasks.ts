/** Folders of tasks in Harbor's format. */
import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { localFailure } from '../sandbox/local-failure.ts'
import { SETTINGS_FILE } from './format.ts'
import { type HarborProblem, Problems, refusal } from './problems.ts'
import type { HarborTask } from './task.ts'

export interface HarborOptions {
  /** Values for the variables that tasks take from whoever runs them (`env = { KEY = "${KEY}" }`). */
  readonly env?: Readonly<Record<string, string>>
  /** Build a task's Dockerfile also where it names an image that was built of it. Default: that image. */
  readonly build?: boolean
}

/** Folders of tasks may be sorted into folders, so deep. */
const DEPTH_MAX = 4
const TASKS_MAX = 100_000

/**
 * Reads one task folder, or all that are below a folder, in the order of their names; of several folders one after another.
 * @throws SandlotError `invalid_request` that says of each folder which cannot be run what is wrong, by file and field: `details.problems`
 */
export async function harborTasks(
  path: string | readonly string[],
  options: HarborOptions = {},
): Promise<readonly HarborTask[]> {
  refuseUnknown(options, ['env', 'build'])
  const { env = {}, build = false } = options
  const paths = typeof path === 'string' ? [path] : path
  const found = (await Promise.all(paths.map(foldersOf))).flat()
  refuseDoubles(found)
  // Loaded by those alone who have such folders.
  const { readTask } = await import('./read-task.ts')
  const tasks: HarborTask[] = []
  const wrong: HarborProblem[] = []
  let bad = 0
  for (const { directory, key, folder } of found) {
    // Which of several it is, its key says.
    const problems = new Problems(paths.length > 1 ? key : folder)
    const task = await readTask(directory, key, { env, build, problems })
    if (task) tasks.push(task)
    else bad += 1
    wrong.push(...problems.list)
  }
  if (wrong.length > 0) throw refusal(wrong, bad)
  return tasks
}

interface Found {
  readonly directory: string
  /** Relative to what was read, which itself is `''`. */
  readonly folder: string
  readonly key: string
}

function refuseDoubles(found: readonly Found[]): void {
  const byKey = new Map<string, string>()
  for (const { key, directory } of found) {
    const other = byKey.get(key)
    byKey.set(key, directory)
    if (other === undefined) continue
    throw new SandlotError('invalid_request', `${other} and ${directory} are both called ${key}`, {
      hint: 'Name the folder that both are in, or read them one after the other.',
    })
  }
}

async function foldersOf(shown: string): Promise<readonly Found[]> {
  const top = resolve(shown)
  const found: string[] = []
  await look(top, '', found)
  if (found.length > 0) {
    return found.map((folder) => ({
      ...{ directory: join(top, folder), folder },
      key: folder === '' ? basename(top) : folder,
    }))
  }
  throw new SandlotError('invalid_request', `${shown} is no task folder, and none is below it`, {
    hint: `A task folder has a ${SETTINGS_FILE}, an instruction.md, environment/ and tests/.`,
  })
}

async function look(top: string, below: string, found: string[]): Promise<void> {
  const directory = join(top, below)
  const names = await readdir(directory).catch((error) => {
    throw localFailure(error, `cannot read ${directory}`)
  })
  if (names.includes(SETTINGS_FILE)) {
    found.push(below)
    if (found.length > TASKS_MAX) {
      throw new SandlotError('too_large', `${top} has more than ${TASKS_MAX} tasks`)
    }
    return
  }
  if (below.split('/').length >= DEPTH_MAX) return
  for (const name of names.sort()) {
    if (name.startsWith('.')) continue
    const inner = below === '' ? name : `${below}/${name}`
    const isDirectory = (await stat(join(top, inner)).catch(() => undefined))?.isDirectory()
    if (isDirectory) await look(top, inner, found)
  }
}
