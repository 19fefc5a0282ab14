import type { Clock } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { CallLogs } from './call-logs.ts'
import type { Slot } from './fleet.ts'
import { outputPin } from './names.ts'
import type { News } from './news.ts'
import type { FunctionRecord, QueueRecord } from './records.ts'
import { attemptOf, type Task } from './task.ts'
import { lostError, mayBegin, type TryEnd, taskErrorOf } from './tries.ts'

export interface Calling {
  readonly record: QueueRecord & { readonly function: FunctionRecord }
  readonly clock: Clock
  readonly logs: CallLogs
  readonly news: News
}

/** One try of a task in the container of this slot. One that takes too long ends, and its container takes nothing more. */
export async function callContainer(
  task: Task,
  slot: Slot,
  { record, clock, logs, news }: Calling,
): Promise<TryEnd> {
  if (!mayBegin(task.tries, record.retry)) {
    const message = 'the container or the daemon was lost while it had the input'
    return { kind: 'fatal', error: lostError(message) }
  }
  const { timeoutMs, label } = record.function
  const { json, blob, replay } = task.body
  const id = String(task.delivery.lease.token)
  const late = Promise.withResolvers<TryEnd>()
  const cancelTimer = clock.after(timeoutMs, () => {
    slot.container.cancel(id)
    slot.retire()
    const message = `${label} took longer than ${timeoutMs} ms for one input`
    const error = taskErrorOf(new SandlotError('function_timeout', message))
    late.resolve({ kind: 'error', error })
  })
  const running = slot.container.run({
    ...{ id, json, blob, attempt: attemptOf(task) },
    outputPin: outputPin(record.uid, task.id, replay),
    onLog: (line) => {
      logs.add(task.stream, { task: task.id, ...line })
      news.beat(task.stream)
    },
  })
  try {
    return await Promise.race([running, late.promise])
  } finally {
    cancelTimer()
  }
}
