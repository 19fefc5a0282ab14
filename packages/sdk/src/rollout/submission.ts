/** Sends the tasks of a run, in order, in requests of bounded size. */
import { LIMITS, type RunView, SandlotError, type TaskPutInput } from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { isCode } from '../connection/failure.ts'
import { pause } from '../connection/pause.ts'
import { unlessAborted } from '../connection/signals.ts'
import type { RunOptions } from './options.ts'
import { namedKey, shown, type TaskNaming, taskPut } from './task-put.ts'
import type { TaskSource } from './tasks.ts'

/** A request is sent before it reaches the limit of a body. */
const REQUEST_BYTES = LIMITS.bodyBytes / 2
/** Of a source that may have no end no more is taken while so many episodes are queued; that is looked at after so many tasks. */
const QUEUED_MAX = 50_000
const LOOK_EVERY = 10_000
const LOOK_AGAIN_MS = 500
/** What is there is sent when a slow source gives nothing for so long. */
const QUIET_MS = 50

export interface Submission<Task> {
  readonly run: string
  readonly tasks: TaskSource<Task>
  readonly naming: TaskNaming<Task>
  readonly signal: AbortSignal
  /** A task has got its place in a request. */
  readonly onTask?: (put: TaskPutInput) => void
}

export interface Submitted {
  /** New to the run. */
  readonly added: number
  /** There already, with the same key and content. */
  readonly known: number
}

/** Adds all tasks. Sent again after a lost answer they are known, not doubled: their key and content tell. */
export async function submitTasks<Task>(
  context: ClientContext,
  { run, tasks, naming, signal, onTask }: Submission<Task>,
): Promise<Submitted> {
  const submitted = { added: 0, known: 0 }
  let batch: TaskPutInput[] = []
  let batchBytes = 0
  let lookAt = LOOK_EVERY
  const flush = async () => {
    if (batch.length === 0) return
    const json = { tasks: batch }
    batch = []
    batchBytes = 0
    const answer = await context.http.json<Submitted>('putTasks', {
      ...{ parameters: { name: run }, json, signal },
    })
    submitted.added += answer.added
    submitted.known += answer.known
    if (tasks.isList || submitted.added < lookAt) return
    lookAt = submitted.added + LOOK_EVERY
    await roomInQueue(context, run, signal)
  }
  for (let index = 0; ; index++) {
    const coming = tasks.next()
    if (batch.length > 0 && !(await comesSoon(coming))) await flush()
    const next = await unlessAborted(coming, signal)
    if (next.done) break
    const put = await taskPut(context, next.value, index, { ...naming, signal })
    onTask?.(put)
    const sizeBytes = Buffer.byteLength(JSON.stringify(put))
    if (batch.length >= LIMITS.tasksPerRequest || batchBytes + sizeBytes > REQUEST_BYTES) {
      await flush()
    }
    batch.push(put)
    batchBytes += sizeBytes
  }
  await flush()
  return submitted
}

/** So that a generator without an end fills no daemon. */
async function roomInQueue(
  context: ClientContext,
  run: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const parameters = { name: run }
    const { counts, state } = await context.http.json<RunView>('getRun', { parameters, signal })
    if (counts.queued < QUEUED_MAX || state === 'cancelling' || state === 'finished') return
    await pause(LOOK_AGAIN_MS, signal)
  }
}

/** Of a list of tasks, in which each has a key of its own: default its position. */
export function listNaming<Task>({
  key,
  ...rest
}: Pick<RunOptions<Task>, 'key' | 'expected' | 'group'>): TaskNaming<Task> {
  const indexes = new Map<string, number>()
  return {
    ...rest,
    keyOf(task, index) {
      const name = namedKey(task, index, {
        ...(key ? { key } : {}),
        otherwise: () => String(index),
      })
      const before = indexes.get(name)
      if (before !== undefined) throw twice(name, before, index)
      indexes.set(name, index)
      return name
    },
  }
}

function twice(key: string, before: number, index: number): SandlotError {
  const message = `tasks ${before} and ${index} have the same key ${shown(key)}`
  return new SandlotError('task_conflict', message, {
    hint: 'Give each its own with `key: (task, i) => …`; to run one several times, say `group: { size: … }`.',
    details: { key },
  })
}

/** Whether it comes, or fails, without much waiting. */
function comesSoon(coming: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), QUIET_MS)
    const there = () => {
      clearTimeout(timer)
      resolve(true)
    }
    coming.then(there, there)
  })
}

/** Adds all tasks and says that no more come. */
export async function submitAndClose<Task>(
  context: ClientContext,
  submission: Submission<Task>,
): Promise<void> {
  const { run: name, tasks, signal } = submission
  try {
    await submitTasks(context, submission)
    await context.http.json('closeRun', { parameters: { name }, signal })
  } catch (error) {
    if (!isCode(error, 'run_closed') || !(await isEnding(context, name, signal))) throw error
  } finally {
    await tasks.close()
  }
}

/** Somebody cancelled it meanwhile: what is missing would only be cancelled too. */
async function isEnding(
  { http }: ClientContext,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { state } = await http.json<RunView>('getRun', { parameters: { name }, signal })
  return state === 'cancelling' || state === 'finished'
}
