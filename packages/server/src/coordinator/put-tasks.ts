import { checkMembers, episodesOf, type InputBody, type Run, type TaskInput } from '@sandlot/core'
import { LIMITS, SandlotError } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { LiveRun } from './live-run.ts'
import type { OwnStart } from './own-starts.ts'
import { type TaskTerms, taskTermsOf } from './own-terms.ts'
import type { TaskRequest } from './port.ts'
import { refuseNever } from './refuse-never.ts'
import type { CoordinatorServices } from './services.ts'
import { type CarriedTask, type StoredTask, taskDigest, taskSeed } from './task-store.ts'

interface Keyed {
  readonly task: TaskRequest
  readonly terms: TaskTerms | undefined
  readonly digest: string
}

/**
 * Adds tasks: first their contents, then, in one decision, the tasks themselves. What a crash leaves between the two is content that
 * nobody refers to.
 */
export async function putTasks(
  services: Pick<CoordinatorServices, 'imageDigest' | 'node'>,
  live: LiveRun,
  tasks: readonly TaskRequest[],
): Promise<{ added: number; known: number }> {
  const { imageDigest } = services
  const { run } = live.actor
  const keyed: Keyed[] = []
  for (const task of tasks) {
    const terms = await taskTermsOf(live.record.specification, task, imageDigest)
    const resources = terms?.own?.resources
    // One that only asks for too much has a row that says so, and the others are run.
    if (resources?.gpu) await refuseNever(services, resources)
    keyed.push({ task, terms, digest: taskDigest(task, terms?.identity) })
  }
  const fresh = unknownOf(run, keyed)
  if (fresh.length === 0) return { added: 0, known: tasks.length }
  await live.starts.add(fresh.flatMap(({ terms }) => startsOf(live, terms)))
  const carried = await live.tasks.add(fresh.map(storedTask))
  let added = 0
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  live.actor.decide(
    () => {
      // Decided on the run as it is now: another call may have put the same keys meanwhile.
      const still = new Set(unknownOf(run, fresh))
      added = still.size
      const inputs = fresh.flatMap((item, index) =>
        still.has(item) ? inputOf(live, item, carried[index] as CarriedTask) : [],
      )
      return inputsOf(run, inputs)
    },
    (answer) => (answer.ok ? resolve() : reject(answer.error)),
  )
  await promise
  return { added, known: tasks.length - added }
}

/** The first of each key that the run doesn't have. Refuses all of them where one can't be. */
function unknownOf(run: Run, keyed: readonly Keyed[]): Keyed[] {
  const unknown = new Map<string, Keyed>()
  for (const item of keyed) {
    const { key } = item.task
    const before = unknown.get(key)
    const found = before ? (before.digest === item.digest ? 'known' : 'conflict') : check(run, item)
    if (found === 'conflict') {
      throw new SandlotError('task_conflict', `another task has the key ${JSON.stringify(key)}`, {
        details: { key },
      })
    }
    if (found !== 'new') continue
    // Whoever starts the same run again after a crash puts the same tasks again: they are known.
    if (run.closed) throw new SandlotError('run_closed', 'the run takes no more tasks')
    unknown.set(key, item)
  }
  const tasks = [...unknown.values()]
  if (run.totals.tasks + episodesOf(run, tasks.length) > LIMITS.episodes) {
    throw new SandlotError('too_large', `a run has at most ${LIMITS.episodes} episodes`, {
      hint: 'Start another run for the rest.',
    })
  }
  checkMembers(
    run,
    tasks.map(({ task }) => task),
  )
  return tasks
}

function startsOf(live: LiveRun, terms: TaskTerms | undefined): OwnStart[] {
  const { resources } = live.record.specification
  const graders = (terms?.graderImages ?? []).map((image) => ({ image, resources }))
  return [...startOf(live, terms), ...graders]
}

function startOf({ record }: LiveRun, terms: TaskTerms | undefined): OwnStart[] {
  const { start, resources } = terms?.own ?? {}
  if (start === undefined && resources === undefined) return []
  const checkpoint = start?.memory?.checkpoint
  return [
    {
      ...(start ? { image: start.image } : {}),
      ...(checkpoint === undefined ? {} : { checkpoint }),
      resources: resources ?? record.specification.resources,
    },
  ]
}

function storedTask({ task, terms }: Keyed): StoredTask {
  const { json, blob, program, grade } = task
  const steps = program?.steps ?? []
  const commands = [program, grade, ...steps, ...steps.map((step) => step.grade)]
  const files = commands.flatMap((each) => each?.files ?? []).map((file) => file.blob)
  return { json, blob, files, own: terms?.own && JSON.stringify(terms.own) }
}

function check(run: Run, { task, digest }: Keyed): 'new' | 'known' | 'conflict' {
  return run.keys.check(task.key, digest)
}

function inputOf(live: LiveRun, { task, terms, digest }: Keyed, carried: CarriedTask): TaskInput {
  const { taskJson, taskBlob, own } = carried
  const { from, timeoutMs } = terms ?? {}
  return {
    ...{ key: task.key, digest, taskJson, taskBlob },
    seed: taskSeed(live.record.specification.seed, task.key),
    ...(task.group === undefined ? {} : { group: task.group }),
    ...(task.expectedMs === undefined ? {} : { expectedMs: task.expectedMs }),
    ...(terms === undefined
      ? {}
      : {
          own: {
            ...(from === undefined ? {} : { from }),
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
            ...(own === null ? {} : { more: own }),
          },
        }),
  }
}

/** So many a time that each becomes an event of moderate size. */
function inputsOf(run: Run, tasks: readonly TaskInput[]): InputBody[] {
  const { tasksEventCharacters, tasksEventEpisodes } = COORDINATOR_LIMITS
  const inputs: InputBody[] = []
  let chunk: TaskInput[] = []
  let length = 0
  for (const task of tasks) {
    length += JSON.stringify(task).length
    chunk.push(task)
    const episodes = episodesOf(run, chunk.length)
    if (length < tasksEventCharacters && episodes < tasksEventEpisodes) continue
    inputs.push({ type: 'tasks_put', tasks: chunk })
    chunk = []
    length = 0
  }
  if (chunk.length > 0) inputs.push({ type: 'tasks_put', tasks: chunk })
  return inputs
}
