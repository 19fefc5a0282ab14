/** A task as it is sent: its key, its content, its group. */
import { LIMITS, plainJson, SandlotError, type TaskPutInput } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { putBytes } from '../image/blob.ts'
import type { RunOptions } from './options.ts'
import type { OwnTerms } from './own-terms.ts'
import { describeValue } from './tasks.ts'

export interface TaskNaming<Task> extends Pick<RunOptions<Task>, 'expected' | 'group'> {
  /** Throws what is wrong with the key. */
  readonly keyOf: (task: Task, index: number, json: string) => string
  /** What is sent of it. Default: all. */
  readonly content?: ((task: Task, index: number) => unknown) | undefined
  /** What it has of its own. */
  readonly own?: (task: Task, index: number) => Promise<OwnTerms>
}

/** Uploads a large one. Throws `invalid_request` or `too_large`. */
export async function taskPut<Task>(
  context: ClientContext,
  task: Task,
  index: number,
  { keyOf, expected, group, content, own, signal }: TaskNaming<Task> & Waiting,
): Promise<TaskPutInput> {
  const json = jsonOf(content ? content(task, index) : task, index)
  const key = keyOf(task, index, json)
  const bytes = new TextEncoder().encode(json)
  if (bytes.length > LIMITS.payloadBytes) {
    const message = `task ${shown(key)} has ${bytes.length} bytes; at most ${LIMITS.payloadBytes} are taken`
    throw new SandlotError('too_large', message, {
      hint: 'Put large data into the image, or upload it in the episode.',
    })
  }
  const expectedMs = expected?.(task, index)
  const name = groupOf(task, index, { group })
  const isLarge = bytes.length > LIMITS.inlineBytes
  return {
    key,
    ...(isLarge ? { blob: await putBytes(context, bytes, signal ? { signal } : {}) } : { json }),
    ...(name === undefined ? {} : { group: name }),
    ...(expectedMs === undefined ? {} : { expectedMs }),
    ...(await own?.(task, index)),
  }
}

/** What the option `key` gives, or else `task.id`, or what is left to say. */
export function namedKey<Task>(
  task: Task,
  index: number,
  { key, otherwise }: Pick<RunOptions<Task>, 'key'> & { readonly otherwise: () => string },
): string {
  const given: unknown = key ? key(task, index) : (idOf(task) ?? otherwise())
  if (typeof given === 'string' && given !== '' && given.length <= LIMITS.keyLength) return given
  const what = typeof given === 'string' ? `${given.length} characters long` : describeValue(given)
  throw new SandlotError('invalid_request', `the key of task ${index} is ${what}`, {
    hint: `A key is text of 1 to ${LIMITS.keyLength} characters.`,
  })
}

/** For an error's message. */
export function shown(key: string): string {
  return JSON.stringify(key.slice(0, 80))
}

function jsonOf(task: unknown, index: number): string {
  const hint = 'A task is plain data: text, numbers, arrays, objects.'
  let json: string | undefined
  try {
    json = plainJson(task, `task ${index}`)
  } catch (cause) {
    const message = `task ${index} can't be written as JSON: ${(cause as Error).message}`
    throw new SandlotError('invalid_request', message, { hint, cause })
  }
  if (json !== undefined) return json
  const message = `task ${index} is ${describeValue(task)}, which JSON can't hold`
  throw new SandlotError('invalid_request', message, { hint })
}

function idOf(task: unknown): string | undefined {
  const id = typeof task === 'object' && task !== null ? (task as { id?: unknown }).id : undefined
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined
}

function groupOf<Task>(
  task: Task,
  index: number,
  { group }: { readonly group: RunOptions<Task>['group'] | undefined },
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
