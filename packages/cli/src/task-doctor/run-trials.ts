/** Runs every trial of every task as an episode of one run, and sorts what came of them by task. */
import type { ImageLike, ResultRow, Run, Sandlot, SandlotError, TaskOptions } from 'sandlot'
import { pause } from '../commands/pause.ts'
import { describeLive } from '../commands/watch-run.ts'
import { startProgressLine } from '../output/progress.ts'
import { type Built, buildImages } from '../tasks/build-images.ts'
import { imagesOf, withBuilt } from '../tasks/own-images.ts'
import type { TaskTrials } from './diagnose.ts'
import type { DoctorSource, DoctorTask } from './source.ts'
import { type PassRule, type Trial, type TrialRole, trialOf } from './trial.ts'

export interface TrialsOptions {
  /** Trials of each role of each task. */
  readonly times: number
  readonly concurrency?: number
  readonly pass: PassRule
  readonly signal: AbortSignal
}

interface TrialTask {
  readonly key: string
  readonly task: DoctorTask
  readonly role: TrialRole
  readonly own: TaskOptions
}

const WATCH_MS = 500

/** `run`: whose episodes the trials are; undefined where no image could be built. */
export async function runTrials(
  client: Sandlot,
  source: DoctorSource,
  options: TrialsOptions,
): Promise<{ readonly run?: string; readonly trials: readonly TaskTrials[] }> {
  const { tasks } = source
  const wanted = tasks.flatMap(({ options: { gold, null: none } }) => [
    ...imagesOf(gold),
    ...imagesOf(none),
  ])
  const images = await buildImages(client, wanted, options.signal)
  const found = new Map<string, Trial[]>()
  const all: TrialTask[] = []
  for (const task of tasks) {
    const built = builtOf(task, images)
    if ('error' in built) found.set(task.key, unbuilt(task, built.error))
    else {
      all.push(...trialsOf(task, built, options.times))
      found.set(task.key, [])
    }
  }
  const run = all.length > 0 ? start(client, source, all, options) : undefined
  const rows = run ? await rowsOf(run, options.signal) : new Map<string, ResultRow>()
  for (const { key, task, role } of all) {
    const row = rows.get(key)
    if (row) found.get(task.key)?.push(trialOf(role, row, options.pass))
  }
  const trials = tasks.map(({ key, timeoutMs }) => ({
    ...{ key, timeoutMs, trials: found.get(key) ?? [] },
  }))
  return { ...(run ? { run: run.name } : {}), trials }
}

/** In turn, so that none has its luck in a moment in which the machine is busy. */
function trialsOf(task: DoctorTask, built: DoctorTask['options'], times: number): TrialTask[] {
  return Array.from({ length: times }, (_, n) =>
    task.roles.map((role) => ({
      ...{ key: `${task.key}/${role}/${n + 1}`, task, role },
      own: built[role],
    })),
  ).flat()
}

/** What both are made of, or why that can't be. */
function builtOf(
  { options }: DoctorTask,
  images: ReadonlyMap<ImageLike, Built>,
): DoctorTask['options'] | { readonly error: SandlotError } {
  const [gold, none] = [withBuilt(options.gold, images), withBuilt(options.null, images)]
  if ('error' in none) return none
  return 'error' in gold ? gold : { gold: gold.own, null: none.own }
}

function unbuilt({ roles: [role] }: DoctorTask, error: SandlotError): Trial[] {
  const what = `its image can't be built: ${error.message}`
  return role ? [{ role, verdict: 'fault', score: null, what, agentMs: 0, gradeMs: 0 }] : []
}

function start(
  client: Sandlot,
  { run: shared }: DoctorSource,
  trials: readonly TrialTask[],
  { concurrency, signal }: TrialsOptions,
): Run {
  return client.rollouts.program(trials, {
    ...shared,
    from: trials[0]?.own.from ?? '',
    ...(concurrency === undefined ? {} : { concurrency }),
    key: ({ key }) => key,
    content: ({ task }) => task.content,
    each: ({ own }) => own,
    // A grade that has to be tried again is what is looked for.
    retry: { grade: 0 },
    tags: { doctor: 'tasks' },
    signal,
  })
}

/** When it is over; whoever leaves ends it. */
async function rowsOf(run: Run, signal: AbortSignal): Promise<ReadonlyMap<string, ResultRow>> {
  try {
    await run.submitted
    await follow(run, signal)
    const rows = await run.wait({ signal })
    return new Map(rows.map((row) => [row.key, row]))
  } catch (error) {
    await run.cancel().catch(() => undefined)
    throw error
  }
}

async function follow(run: Run, signal: AbortSignal): Promise<void> {
  using line = startProgressLine()
  for (;;) {
    const report = await run.report({ signal })
    line.update(describeLive(report))
    const { state } = report.run
    if (state === 'finished') return
    // That many tasks are broken is no reason to stop: it is what is to be found out.
    if (state === 'paused') await run.resume()
    await pause(WATCH_MS, signal)
  }
}
