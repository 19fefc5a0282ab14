import type { Engine } from '@sandlot/engine'
import type { DeadLetter } from '@sandlot/protocol'
import { decodeJson, encodeJson } from '../json.ts'
import { deadPrefix, messagesOf } from './names.ts'
import { type DeadRecord, deadRecord, type QueueRecord, type TaskBody } from './records.ts'

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
  const from = after === undefined ? {} : { after: prefix + after }
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
  const { kv } = engine
  const prefix = deadPrefix(uid)
  let replayed = 0
  if (tasks) {
    for (const task of new Set(tasks)) {
      const entry = await kv.get(prefix + task).catch(() => undefined)
      if (!entry) continue
      await replay(engine, uid, task, deadRecord.parse(decodeJson(entry.value)))
      replayed += 1
    }
    return replayed
  }
  for (;;) {
    const { entries } = await kv.list(prefix, { limit: PAGE })
    if (entries.length === 0) return replayed
    for (const { key, value } of entries) {
      await replay(engine, uid, key.slice(prefix.length), deadRecord.parse(decodeJson(value)))
      replayed += 1
    }
  }
}

async function replay(
  { queue, kv }: Engine,
  uid: string,
  task: string,
  { body }: DeadRecord,
): Promise<void> {
  const again: TaskBody = { ...body, task, replay: body.replay + 1 }
  await queue.put(messagesOf(uid), encodeJson(again), { dedup: `replay:${task}#${again.replay}` })
  await kv.delete(deadPrefix(uid) + task)
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
