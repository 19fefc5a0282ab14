/**
 * What a try came to becomes durable: the result first, once by its key; then a dead letter; then the end of the message. A kill between
 * leaves a message that is delivered again, and then only what is missing is done.
 */
import { type Clock, type Engine, isEngineError } from '@sandlot/engine'
import { isTransient } from '../coordinator/engine-error.ts'
import { encodeJson } from '../json.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { deadPrefix, triesPrefix } from './names.ts'
import type { News } from './news.ts'
import type { DeadRecord, QueueRecord, ResultRecord, TaskTries } from './records.ts'
import type { ResultWriter } from './result-writer.ts'
import { attemptOf, type Task } from './task.ts'
import { nextStep, type TryEnd } from './tries.ts'

export interface Settling {
  readonly engine: Engine
  readonly clock: Clock
  readonly record: QueueRecord
  readonly results: ResultWriter
  readonly news: News
  /** Aborts when the daemon closes: what is not durable then is done by the next one. */
  readonly signal: AbortSignal
}

export async function settle(
  task: Task,
  end: TryEnd,
  times: { readonly startedAtMs: number },
  settling: Settling,
): Promise<void> {
  const step = nextStep(end, task.tries, settling.record.retry)
  if (step.kind === 'again') return await giveBack(task, step.tries, step.delayMs, settling)
  const value = end.kind === 'value' ? end : undefined
  await finish(
    task,
    {
      task: task.id,
      key: task.body.key,
      ok: step.kind === 'done',
      json: value?.json ?? null,
      blob: value?.blob ?? null,
      error: step.kind === 'dead' ? step.error : null,
      attempts: attemptOf(task) - (end.kind === 'fatal' ? 1 : 0),
      replay: task.body.replay,
      startedAtMs: times.startedAtMs,
      endedAtMs: settling.clock.now(),
    },
    settling,
  )
}

/** Also of a result that is recorded already. */
export async function finish(task: Task, row: ResultRecord, settling: Settling): Promise<void> {
  const { engine, record, results, news } = settling
  if (task.recorded === undefined) {
    await durable(settling, () => results.append(task.stream, task.key, encodeJson(row)))
    news.beat(task.stream)
  }
  const isDead = row.error !== null && record.kind === 'tasks'
  if (row.error !== null && record.kind === 'tasks') {
    const { error, attempts, endedAtMs: diedAtMs } = row
    const dead: DeadRecord = { body: task.body, error, attempts, diedAtMs }
    const key = deadPrefix(record.uid) + task.id
    await durable(settling, () => engine.kv.put(key, encodeJson(dead)))
  }
  await durable(settling, () => engine.queue.ack(task.delivery.lease))
  const { lease } = task.delivery
  if (lease.deliveries > 1) {
    await durable(settling, () => engine.kv.delete(triesPrefix(record.uid) + lease.id))
  }
  // A replay needs it again.
  const { pin } = task.body
  if (pin !== null && !isDead) await durable(settling, () => engine.blobs.unpin(pin))
}

export async function giveBack(
  { delivery }: Pick<Task, 'delivery'>,
  tries: TaskTries,
  delayMs: number,
  settling: Settling,
): Promise<void> {
  const { engine, record } = settling
  const key = triesPrefix(record.uid) + delivery.lease.id
  const known: TaskTries = { ...tries, seen: tries.seen + delivery.again }
  await durable(settling, () => engine.kv.put(key, encodeJson(known)))
  await durable(settling, () => engine.queue.nack(delivery.lease, { delayMs }))
}

/** Tries again while the disk is full. A lease that another has by now is that one's. */
async function durable(
  { clock, signal }: Pick<Settling, 'clock' | 'signal'>,
  write: () => Promise<unknown>,
): Promise<void> {
  for (;;) {
    try {
      await write()
      return
    } catch (error) {
      if (isEngineError(error, 'lease_lost')) return
      if (signal.aborted || !isTransient(error)) throw error
      await new Promise<void>((resolve) => {
        clock.after(FUNCTION_LIMITS.appendRetryMs, resolve)
      })
    }
  }
}
