import { type QueueResult, SandlotError, type TaskError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { getJson } from '../image/blob.ts'

/** What a function threw, with the name, the message and the stack that it had there, by the lines of its source. */
export class FunctionError extends Error {
  constructor({ name, message, stack }: Omit<TaskError, 'code'>) {
    super(message)
    this.name = name
    if (stack !== undefined) this.stack = stack
  }
}

export function errorOf(error: TaskError): Error {
  if (error.code === null) return new FunctionError(error)
  return new SandlotError(error.code, error.message)
}

/** The value of a result. Throws what there is in its place. */
export async function readValue(
  context: ClientContext,
  { error, json, blob }: QueueResult,
  waiting: Waiting = {},
): Promise<unknown> {
  if (error) throw errorOf(error)
  if (blob !== null) return await getJson(context, blob, waiting)
  return json === null ? undefined : JSON.parse(json)
}
