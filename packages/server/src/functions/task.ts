/** A task that is leased, with what is known of it. */
import type { Engine, Lease } from '@sandlot/engine'
import { decodeJson } from '../json.ts'
import { resultKey, resultsOf, triesPrefix } from './names.ts'
import {
  type QueueRecord,
  type ResultRecord,
  resultRecord,
  type TaskBody,
  type TaskTries,
  taskBody,
  taskTries,
} from './records.ts'
import { NO_TRIES, triesBefore } from './tries.ts'

/** A message that this daemon holds. */
export interface Delivery {
  /** The latest: a daemon that stood still for long finds its own messages delivered again. */
  lease: Lease
  /** How often that was. */
  again: number
}

export interface Task {
  readonly delivery: Delivery
  readonly body: TaskBody
  /** The same in each of its replays. */
  readonly id: string
  /** Where its result goes, and the key that the result is recorded under once. */
  readonly stream: string
  readonly key: string
  readonly tries: TaskTries
  /** How it ended, where a daemon was killed before the message was done with. */
  readonly recorded: ResultRecord | undefined
}

export async function readTask(
  { kv, log }: Engine,
  { uid }: QueueRecord,
  delivery: Delivery,
): Promise<Task> {
  const { lease } = delivery
  const body = taskBody.parse(decodeJson(lease.body))
  const id = body.task ?? lease.id
  const stream = resultsOf(uid, body.call)
  const key = resultKey(id, body.replay)
  const task = { delivery, body, id, stream, key }
  if (lease.deliveries === 1) return { ...task, tries: NO_TRIES, recorded: undefined }
  const [found] = await log.find(stream, [key])
  const known = await kv.get(triesPrefix(uid) + lease.id)
  const tries = known ? taskTries.parse(decodeJson(known.value)) : NO_TRIES
  return {
    ...task,
    tries: triesBefore(lease.deliveries, tries),
    recorded: found && resultRecord.parse(decodeJson(found.bytes)),
  }
}

/** How often it was begun, the present try included. */
export function attemptOf({ tries }: Task): number {
  return tries.errors + tries.lost + 1
}
