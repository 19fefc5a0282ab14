/** What is removed by its age, and with its queue. */
import type { Clock, Engine } from '@sandlot/engine'
import type { Logger } from 'pino'
import { decodeJson } from '../json.ts'
import { deleteBelow } from './dead-letters.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import {
  deadPrefix,
  messagesOf,
  outputPin,
  pinPrefix,
  resultsPrefix,
  triesPrefix,
} from './names.ts'
import { type QueueRecord, resultRecord } from './records.ts'
import { UnusedInputs } from './unused-inputs.ts'

export interface Sweeping {
  readonly engine: Engine
  readonly clock: Clock
  readonly log: Logger
  readonly queues: () => readonly QueueRecord[]
  /** How long results of one stay. */
  readonly keptMs: (queue: QueueRecord) => number
  /** Removes a queue of calls that nobody used for as long as their results are kept. */
  readonly remove: (queue: QueueRecord) => Promise<void>
}

/** Removes what is too old now and then, until disposed. */
export function sweepResults(sweeping: Sweeping): Disposable {
  const { engine, clock, log, queues, keptMs, remove } = sweeping
  const inputs = new UnusedInputs(engine)
  let stopped = false
  let cancel = clock.after(FUNCTION_LIMITS.sweepMs, look)
  function look(): void {
    void sweep().finally(() => {
      if (!stopped) cancel = clock.after(FUNCTION_LIMITS.sweepMs, look)
    })
  }
  async function sweep(): Promise<void> {
    for (const record of queues()) {
      if (stopped) return
      try {
        const isRead = await trimResults(engine, record, clock.now() - keptMs(record))
        const isEmpty = !(await hasTasks(engine, record))
        const isOld = record.createdAtMs + keptMs(record) < clock.now()
        if (record.kind === 'calls' && isRead && isEmpty && isOld) await remove(record)
      } catch (error) {
        if (!stopped) log.warn({ err: error, queue: record.name }, 'old results were not removed')
      }
    }
    if (stopped) return
    await inputs.drop(queues().map(({ uid }) => uid)).catch((error) => {
      if (!stopped) log.warn({ err: error }, 'inputs of no task were not removed')
    })
  }
  return {
    [Symbol.dispose]: () => {
      stopped = true
      cancel()
    },
  }
}

/** Removes results of before. True where the queue has none left. */
async function trimResults(
  engine: Engine,
  record: QueueRecord,
  beforeMs: number,
): Promise<boolean> {
  const { log } = engine
  const isCalls = record.kind === 'calls'
  let left = 0
  for (const { name } of await streamsOf(engine, record)) {
    if (await trimStream(engine, record, name, beforeMs)) left += 1
    else if (isCalls) await log.delete(name)
  }
  return left === 0
}

async function hasTasks({ queue }: Engine, { uid }: QueueRecord): Promise<boolean> {
  const { ready, delayed, leased } = await queue.depth(messagesOf(uid))
  return ready + delayed + leased > 0
}

/** Whether anything of it is left. */
async function trimStream(
  { log, blobs }: Engine,
  { uid }: QueueRecord,
  stream: string,
  olderThanMs: number,
): Promise<boolean> {
  for (;;) {
    const records = await log.read(stream)
    let old: string | undefined
    for (const { position, bytes } of records) {
      const { endedAtMs, blob, task, replay } = resultRecord.parse(decodeJson(bytes))
      if (endedAtMs >= olderThanMs) break
      if (blob !== null) await blobs.unpin(outputPin(uid, task, replay))
      old = position
    }
    if (old === undefined) return records.length > 0
    await log.trim(stream, old)
  }
}

/** Removes all that a queue has, but its record. May be done again. */
export async function removeAll(engine: Engine, record: QueueRecord): Promise<void> {
  const { uid } = record
  await engine.queue.delete(messagesOf(uid))
  for (const { name } of await streamsOf(engine, record)) await engine.log.delete(name)
  await deleteBelow(engine, deadPrefix(uid))
  await deleteBelow(engine, triesPrefix(uid))
  for (;;) {
    const { pins } = await engine.blobs.pins(pinPrefix(uid))
    if (pins.length === 0) return
    for (const { name } of pins) await engine.blobs.unpin(name)
  }
}

async function streamsOf({ log }: Engine, { uid }: QueueRecord) {
  const all: { readonly name: string }[] = []
  for (let after: string | undefined; ; ) {
    const page = await log.list(resultsPrefix(uid), after === undefined ? {} : { after })
    all.push(...page.streams)
    after = page.next
    if (after === undefined) return all
  }
}
