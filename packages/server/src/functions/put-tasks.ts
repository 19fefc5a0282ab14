import type { Engine } from '@sandlot/engine'
import type { QueueTasksPut } from '@sandlot/protocol'
import { encodeJson } from '../json.ts'
import { keepBlob } from './keep-blob.ts'
import { inputPin, messagesOf, OWN_CALL } from './names.ts'
import type { QueueRecord, TaskBody } from './records.ts'

/** Resolves when all of them are durable. A long input is kept before its task is there. */
export async function putTasks(
  engine: Engine,
  { uid }: QueueRecord,
  { call = OWN_CALL, tasks }: QueueTasksPut,
): Promise<{ readonly task: string; readonly duplicate: boolean }[]> {
  return await Promise.all(
    tasks.map(async ({ id, key = null, json = null, blob = null, priority, delay }) => {
      const pin = blob === null ? null : inputPin(uid, id)
      if (pin !== null && blob !== null) await keepBlob(engine, pin, blob)
      const body: TaskBody = { call, key, json, blob, pin, task: null, replay: 0 }
      const put = await engine.queue.put(messagesOf(uid), encodeJson(body), {
        dedup: key === null ? `id:${id}` : `key:${key}`,
        ...(priority === undefined ? {} : { priority }),
        ...(delay === undefined ? {} : { delayMs: delay }),
      })
      return { task: put.id, duplicate: put.duplicate }
    }),
  )
}
