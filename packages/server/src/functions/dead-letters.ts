import { type Engine, isEngineError, type KvEntry } from '@sandlot/engine'
import type { DeadLetter } from '@sandlot/protocol'
import { decodeJson, encodeJson } from '../json.ts'
import { deadPrefix, messagesOf } from './names.ts'
import { type DeadRecord, deadRecord, type QueueRecord, type TaskBody } from './records.ts'
import { isTaskId, taskId } from './task-id.ts'

const PAGE = 100

/** Tasks that failed after their last retry, in the order of their ids. */
export async function listDead(
  { kv }: Engine,
  { uid }: QueueRecord,
  {
    after,
    limit = PAGE,
  }: { readonly after?: string | undefined; readonly limit?: number | undefined },
): Promise<{ readonly items: DeadLetter[]; readonly next: string | null }> {
  const prefix = deadPrefix(uid)
  const from = after === undefined ? {} : { after: prefix + taskId(after) }
  const { entries, next } = await kv.list(prefix, { limit, ...from })
  const items = entries.map(({ key, value }) =>
    letterOf(key.slice(prefix.length), deadRecord.parse(decodeJson(value))),
  )
  return { items, next: next === undefined ? null : next.slice(prefix.length) }
}

/**
 * Puts dead letters back into their queue. Each is put before its letter goes, under a key of its own: after a kill it is known that it was.
 * Returns how many there were.
 */
export async function replayDead(
  engine: Engine,
  { uid }: QueueRecord,
  tasks: readonly string[] | undefined,
): Promise<number> {
  let replayed = 0
  for await (const entry of lettersOf(engine, uid, tasks)) {
    await replay(engine, uid, entry)
    replayed += 1
  }
  return replayed
}

/** Each is come by once: one that dies again meanwhile is left for another time. */
async function* lettersOf(
  { kv }: Engine,
  uid: string,
  tasks: readonly string[] | undefined,
): AsyncGenerator<KvEntry> {
  const prefix = deadPrefix(uid)
  if (tasks) {
    for (const task of new Set(tasks)) {
      const entry = isTaskId(task) ? await kv.get(prefix + task) : undefined
      if (entry) yield entry
    }
    return
  }
  for (let after: string | undefined; ; ) {
    const page = await kv.list(prefix, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    yield* page.entries
    after = page.next
    if (after === undefined) return
  }
}

async function replay({ queue, kv }: Engine, uid: string, letter: KvEntry): Promise<void> {
  const { key, value, revision } = letter
  const { body } = deadRecord.parse(decodeJson(value))
  const task = key.slice(deadPrefix(uid).length)
  const again: TaskBody = { ...body, task, replay: body.replay + 1 }
  await queue.put(messagesOf(uid), encodeJson(again), { dedup: `replay:${task}#${again.replay}` })
  // One that has died again by now has written another letter.
  await kv.delete(key, { expect: revision }).catch((error) => {
    if (!isEngineError(error, 'kv_conflict')) throw error
  })
}

function letterOf(task: string, { body, error, attempts, diedAtMs }: DeadRecord): DeadLetter {
  const { key, json, blob, replay } = body
  return { task, key, json, blob, error, attempts, replay, diedAtMs }
}

/** All that is kept below a prefix goes. */
export async function deleteBelow({ kv }: Engine, prefix: string): Promise<void> {
  for (;;) {
    const { entries } = await kv.list(prefix)
    if (entries.length === 0) return
    await Promise.all(entries.map(({ key }) => kv.delete(key)))
  }
}
