/** Sends the tasks of a run, in order, in requests of bounded size. */
import { LIMITS, SandlotError, type TaskPut } from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { unlessAborted } from '../connection/signals.ts'
import { putBytes } from '../image/blob.ts'
import type { MapOptions } from './options.ts'
import { describeValue, type TaskSource } from './tasks.ts'

/** A request is sent before it reaches the limit of a body. */
const REQUEST_BYTES = LIMITS.bodyBytes / 2
/** What is there is sent when a slow source gives nothing for so long. */
const QUIET_MS = 50

export interface Submission<Task> {
  readonly run: string
  readonly tasks: TaskSource<Task>
  readonly options: Pick<MapOptions<Task>, 'key' | 'expected' | 'group'>
  readonly signal: AbortSignal
}

/** Adds all tasks. Sent again after a lost answer they are known, not doubled: their key and content tell. */
export async function submitTasks<Task>(
  context: ClientContext,
  { run, tasks, options, signal }: Submission<Task>,
): Promise<void> {
  const keys = new Map<string, number>()
  let batch: TaskPut[] = []
  let batchBytes = 0
  const flush = async () => {
    if (batch.length === 0) return
    const json = { tasks: batch }
    batch = []
    batchBytes = 0
    await context.http.json('putTasks', { parameters: { name: run }, json, signal })
  }
  for (let index = 0; ; index++) {
    const coming = tasks.next()
    if (batch.length > 0 && !(await comesSoon(coming))) await flush()
    const next = await unlessAborted(coming, signal)
    if (next.done) break
    const put = await taskPut(context, next.value, index, { options, keys, signal })
    const sizeBytes = Buffer.byteLength(JSON.stringify(put))
    if (batch.length >= LIMITS.tasksPerRequest || batchBytes + sizeBytes > REQUEST_BYTES) {
      await flush()
    }
    batch.push(put)
    batchBytes += sizeBytes
  }
  await flush()
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

async function taskPut<Task>(
  context: ClientContext,
  task: Task,
  index: number,
  {
    options,
    keys,
    signal,
  }: Pick<Submission<Task>, 'options' | 'signal'> & { readonly keys: Map<string, number> },
): Promise<TaskPut> {
  const json = jsonOf(task, index)
  const key = keyOf(task, index, options)
  const before = keys.get(key)
  if (before !== undefined) {
    const message = `tasks ${before} and ${index} have the same key ${shown(key)}`
    throw new SandlotError('task_conflict', message, {
      hint: 'Give each its own with `key: (task, i) => …`; to run one several times, say `group: { size: … }`.',
      details: { key },
    })
  }
  keys.set(key, index)
  const bytes = new TextEncoder().encode(json)
  if (bytes.length > LIMITS.payloadBytes) {
    const message = `task ${shown(key)} has ${bytes.length} bytes; at most ${LIMITS.payloadBytes} are taken`
    throw new SandlotError('too_large', message, {
      hint: 'Put large data into the image, or upload it in the episode.',
    })
  }
  const expectedMs = options.expected?.(task, index)
  const group = groupOf(task, index, options)
  const isLarge = bytes.length > LIMITS.inlineBytes
  return {
    key,
    ...(isLarge ? { blob: await putBytes(context, bytes, { signal }) } : { json }),
    ...(group === undefined ? {} : { group }),
    ...(expectedMs === undefined ? {} : { expectedMs }),
  }
}

function jsonOf(task: unknown, index: number): string {
  const hint = 'A task is plain data: text, numbers, arrays, objects.'
  let json: string | undefined
  try {
    json = JSON.stringify(task)
  } catch (cause) {
    const message = `task ${index} can't be written as JSON: ${(cause as Error).message}`
    throw new SandlotError('invalid_request', message, { hint, cause })
  }
  if (json !== undefined) return json
  const message = `task ${index} is ${describeValue(task)}, which JSON can't hold`
  throw new SandlotError('invalid_request', message, { hint })
}

function keyOf<Task>(task: Task, index: number, { key }: Pick<MapOptions<Task>, 'key'>): string {
  const given: unknown = key ? key(task, index) : defaultKey(task, index)
  if (typeof given === 'string' && given !== '' && given.length <= LIMITS.keyLength) return given
  const what = typeof given === 'string' ? `${given.length} characters long` : describeValue(given)
  throw new SandlotError('invalid_request', `the key of task ${index} is ${what}`, {
    hint: `A key is text of 1 to ${LIMITS.keyLength} characters.`,
  })
}

function groupOf<Task>(
  task: Task,
  index: number,
  { group }: Pick<MapOptions<Task>, 'group'>,
): string | undefined {
  if (!group?.by) return undefined
  const given: unknown = group.by(task, index)
  const name = typeof given === 'number' && Number.isFinite(given) ? String(given) : given
  if (typeof name === 'string' && name !== '' && name.length <= LIMITS.keyLength) return name
  const what = typeof name === 'string' ? `${name.length} characters long` : describeValue(name)
  throw new SandlotError('invalid_request', `the group of task ${index} is ${what}`, {
    hint: `\`group.by\` gives a number, or text of 1 to ${LIMITS.keyLength} characters.`,
  })
}

function defaultKey(task: unknown, index: number): string {
  const id = typeof task === 'object' && task !== null ? (task as { id?: unknown }).id : undefined
  return typeof id === 'string' || typeof id === 'number' ? String(id) : String(index)
}

function shown(key: string): string {
  return JSON.stringify(key.slice(0, 80))
}
