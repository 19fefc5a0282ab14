/** `sandlot runs start`. */
import { isStartId } from '@sandlot/protocol'
import { type ImageLike, type ProgramOptions, type Run, Sandlot, SandlotError } from 'sandlot'
import { Mistake } from '../failure.ts'
import { startProgressLine } from '../output/progress.ts'
import { isInteractive, note, printLine } from '../output/terminal.ts'
import { folderProgram, readFolders } from '../tasks/harbor-folders.ts'
import { holdBack } from '../tasks/hold-back.ts'
import { checkMissingFrom, missingFrom } from '../tasks/missing-from.ts'
import { whoDoes } from '../tasks/who-does.ts'
import { withImages } from '../tasks/with-images.ts'
import { nothingToStartFrom } from './from.ts'
import { functionOptions } from './function-options.ts'
import { interruption } from './interruption.ts'
import { folderOptions, fromOf, programOptions, type StartRunOptions } from './program-options.ts'
import { type ProgramTask, readProgramTasks } from './program-tasks.ts'
import { describeReport } from './run-report.ts'
import { follow } from './watch-run.ts'

/** Submits the tasks and leaves the run to the daemon, or follows it. */
export async function startRunCommand(
  file: string | undefined,
  options: StartRunOptions,
): Promise<void> {
  const { missingFrom: from = [] } = options
  checkMissingFrom(from, options.name)
  const wanted =
    options.harbor === undefined ? await ofFile(file, options) : await ofFolders(file, options)
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  // Before their images: those of tasks that have a result may be gone, and need not be built again.
  const keys = from.length === 0 ? undefined : await missingFrom(client, from, wanted.keys, signal)
  if (keys?.size === 0) return note('nothing is started')
  const tasks = await wanted.built(client, { signal, keys })
  const run = await submit(client, tasks, wanted, signal)
  printLine(run.name)
  if (!(options.watch ?? (isInteractive && !options.detach))) {
    await tellLeft(run, tasks.length)
    return
  }
  const report = await follow(run, signal)
  printLine(describeReport(report))
}

async function tellLeft(run: Run, tasks: number): Promise<void> {
  const { state } = await run.view()
  const results = `\`sandlot runs results ${run.name}\` prints what they come to`
  if (state === 'finished') return note(`its ${countOf(tasks)} done already: ${results}`)
  note(`its ${countOf(tasks)} left to the daemon: \`sandlot runs watch ${run.name}\` follows them,`)
  note(results)
}

function countOf(tasks: number): string {
  return tasks === 1 ? 'task is' : `${tasks} tasks are`
}

interface Wanted {
  /** Starts it, once its images are there. */
  readonly start: (
    client: Sandlot,
    tasks: readonly ProgramTask[],
    working: Required<Pick<ProgramOptions<never>, 'signal' | 'onLog'>>,
  ) => Run
  /** What its sandboxes start from, where its tasks don't say. */
  readonly from?: ImageLike
  /** Of all its tasks. */
  readonly keys: readonly string[]
  /** Its tasks, or those of `keys` alone, with what has to be there before anything is started. */
  built(client: Sandlot, options: BuildOptions): Promise<readonly ProgramTask[]>
}

interface BuildOptions {
  readonly signal: AbortSignal
  readonly keys?: ReadonlySet<string> | undefined
}

async function ofFile(file: string | undefined, options: StartRunOptions): Promise<Wanted> {
  if (file === undefined) {
    const hint = 'name a file with one JSON object a line, - for standard input, or --harbor FOLDER'
    throw new Mistake('there are no tasks', hint)
  }
  if (options.agent !== undefined) {
    throw new Mistake(
      '--agent is for --harbor',
      "say what is run with --command 'python3 /agent.py'",
    )
  }
  const all = await readProgramTasks(file)
  const { fit, why } = await holdBack(all, options.quarantine)
  const tasks = tasksOf(all, fit, why)
  if (options.function !== undefined) return { ...ofFunction(fit, options), ...tasks }
  const run = programOptions(fit, options)
  const start: Wanted['start'] = (client, tasks, working) =>
    client.rollouts.program(tasks, { ...run, ...working })
  return { start, from: run.from, ...tasks }
}

/** Checked before there is a client, as all else. */
function ofFunction(
  fit: readonly ProgramTask[],
  options: StartRunOptions,
): Pick<Wanted, 'start' | 'from'> {
  if (options.command !== undefined) {
    throw new Mistake('both --function and --command', 'name one of them')
  }
  return {
    from: fromOf(fit, options),
    start(client, tasks, working) {
      const { episode, run } = functionOptions(client, fit, options)
      const contents = tasks.map(({ content }) => content)
      const at = (index: number) => tasks[index] as ProgramTask
      const each = {
        key: (_: unknown, index: number) => at(index).key,
        each: (_: unknown, index: number) => at(index).own,
      }
      return client.rollouts.map(contents, episode, { ...run, ...each, ...working })
    },
  }
}

async function ofFolders(file: string | undefined, options: StartRunOptions): Promise<Wanted> {
  const { harbor = [], agent = '' } = options
  if (file !== undefined) {
    throw new Mistake(`both ${file} and --harbor ${harbor.join(' ')}`, 'name one of them')
  }
  const shared = folderOptions(options)
  if (agent === '') {
    throw new Mistake('nobody does the tasks', 'say who does: --agent oracle, nop, or a command')
  }
  const who = whoDoes(agent)
  const folders = await readFolders(harbor, options)
  const { fit, why } = await holdBack(folders, options.quarantine)
  const { tasks, run } = await folderProgram(fit, who, options)
  tellUnsolved(tasks)
  return {
    start(client, all, working) {
      const from = all.find(({ own }) => own.from !== undefined)?.own.from ?? ''
      return client.rollouts.program(all, { ...shared, ...run, from, ...working })
    },
    ...tasksOf(folders, tasks, why),
  }
}

function tasksOf(
  all: readonly Pick<ProgramTask, 'key' | 'digest'>[],
  fit: readonly ProgramTask[],
  why: ReadonlyMap<string, string>,
): Pick<Wanted, 'keys' | 'built'> {
  return {
    keys: all.map(({ key }) => key),
    async built(client, { signal, keys }) {
      const isWanted = ({ key }: { readonly key: string }) => keys?.has(key) ?? true
      return inOrder(
        all.filter(isWanted),
        await withImages(client, fit.filter(isWanted), signal),
        why,
      )
    },
  }
}

/** Of those that nobody can do, each has a row that says so; a run of nothing else is a mistake. */
function tellUnsolved(tasks: readonly ProgramTask[]): void {
  const unsolved = tasks.filter(({ own }) => own.quarantine !== undefined)
  for (const { key, own } of unsolved) note(`${key} will be task_invalid: ${own.quarantine}`)
  if (unsolved.length === tasks.length) {
    throw new Mistake('no task has a solution', 'take another --agent than oracle')
  }
}

/** Those in quarantine in their places, without anything of their own: each has a row that says why. */
function inOrder(
  all: readonly Pick<ProgramTask, 'key' | 'digest'>[],
  fit: readonly ProgramTask[],
  why: ReadonlyMap<string, string>,
): readonly ProgramTask[] {
  const byKey = new Map(fit.map((task) => [task.key, task]))
  return all.map(({ key, digest }) => {
    const quarantine = why.get(key) ?? ''
    return byKey.get(key) ?? { key, content: {}, own: { quarantine }, trials: {}, digest }
  })
}

async function submit(
  client: Sandlot,
  tasks: readonly ProgramTask[],
  { start, from }: Wanted,
  signal: AbortSignal,
): Promise<Run> {
  using line = startProgressLine()
  const onLog = (text: string) => line.update(`building: ${text}`)
  const run = start(client, tasks, { onLog, signal })
  try {
    await run.submitted
    return run
  } catch (error) {
    await tidyUp(client, run)
    signal.throwIfAborted()
    throw startOfNothing(error, [from, ...tasks.map(({ own }) => own.from)])
  }
}

/** A run without any task is as good as none; of another one a person decides. */
async function tidyUp(client: Sandlot, { name, created }: Run): Promise<void> {
  try {
    await created
  } catch {
    return
  }
  const run = await client.rollouts.get(name)
  if ((await run.view()).counts.tasks === 0) {
    await run.cancel()
    await run.wait()
    await run.delete()
    return
  }
  note(`not all tasks are in ${name}, which stays open: the same command with`)
  note(`--name ${name} goes on, \`sandlot runs cancel ${name}\` ends it`)
}

/** What the daemon doesn't know as a name may have been meant for something else. */
function startOfNothing(error: unknown, starts: readonly (ImageLike | undefined)[]): unknown {
  if (!(error instanceof SandlotError) || error.code !== 'image_unknown') return error
  const { message } = error
  const name = starts.find(
    (start) => typeof start === 'string' && !isStartId(start) && message.endsWith(` ${start}`),
  )
  return typeof name === 'string' ? nothingToStartFrom(name) : error
}
