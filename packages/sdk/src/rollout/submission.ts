/** Sends the tasks of a run, in order, in requests of bounded size. */
import { LIMITS, SandlotError, type TaskPut } from '@sandlot/protocol'
import { requestJson } from '../connection/http.ts'
import { putBytes } from '../image/blob.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'
import type { MapOptions } from './options.ts'

/** A request is sent at half of the limit, so that what JSON adds fits. */
const REQUEST_BYTES = LIMITS.bodyBytes / 2

/** Adds all tasks. Sent again after a lost answer they are known, not doubled: their key and content tell. */
export async function submitTasks<Task>(
  context: SandboxContext,
  name: string,
  tasks: Iterable<Task> | AsyncIterable<Task>,
  options: MapOptions<Task>,
): Promise<void> {
  let batch: TaskPut[] = []
  let batchBytes = 0
  const flush = async () => {
    if (batch.length === 0) return
    const json = { tasks: batch }
    batch = []
    batchBytes = 0
    await requestJson(await context.endpoint(), 'putTasks', {
      parameters: { name },
      json,
      signal: options.signal,
    })
  }
  let index = 0
  for await (const task of tasks) {
    const put = await taskOf(context, task, index++, options)
    const sizeBytes = (put.json?.length ?? 0) + put.key.length
    if (batch.length >= LIMITS.tasksPerRequest || batchBytes + sizeBytes > REQUEST_BYTES)
      await flush()
    batch.push(put)
    batchBytes += sizeBytes
  }
  await flush()
}

/** Throws for what is no list of tasks before anything is sent. */
export function checkTasks(tasks: unknown): void {
  const iterable =
    typeof tasks === 'object' &&
    tasks !== null &&
    (Symbol.iterator in tasks || Symbol.asyncIterator in tasks)
  if (!iterable) {
    throw new SandlotError(
      'invalid_request',
      `the tasks are ${describe(tasks)}, not an array or another iterable`,
      {
        hint: 'Pass an array of tasks, or an (async) generator of them.',
      },
    )
  }
}

async function taskOf<Task>(
  context: SandboxContext,
  task: Task,
  index: number,
  options: MapOptions<Task>,
): Promise<TaskPut> {
  const json = JSON.stringify(task)
  if (json === undefined) {
    throw new SandlotError(
      'invalid_request',
      `task ${index} is ${describe(task)}, which JSON can't hold`,
      {
        hint: 'A task is plain data: text, numbers, arrays, objects.',
      },
    )
  }
  const key = options.key ? options.key(task, index) : keyOf(task, index)
  const bytes = new TextEncoder().encode(json)
  if (bytes.length > LIMITS.payloadBytes) {
    throw new SandlotError(
      'too_large',
      `task ${JSON.stringify(key)} has ${bytes.length} bytes; at most ${LIMITS.payloadBytes} are taken`,
      {
        hint: 'Put large data into the image, or upload it in the episode.',
      },
    )
  }
  const expectedMs = options.expected?.(task, index)
  return {
    key,
    ...(bytes.length > LIMITS.inlineBytes ? { blob: await putBytes(context, bytes) } : { json }),
    ...(expectedMs === undefined ? {} : { expectedMs }),
  }
}

function keyOf(task: unknown, index: number): string {
  const id = typeof task === 'object' && task !== null ? (task as { id?: unknown }).id : undefined
  return typeof id === 'string' || typeof id === 'number' ? String(id) : String(index)
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object'
    ? 'an object'
    : typeof value === 'function'
      ? 'a function'
      : `${typeof value} ${String(value)}`
}
