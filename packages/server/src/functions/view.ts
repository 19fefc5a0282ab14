import type { Engine } from '@sandlot/engine'
import type { QueueView } from '@sandlot/protocol'
import { deadPrefix, messagesOf } from './names.ts'
import type { QueueWork } from './queue-work.ts'
import type { QueueRecord } from './records.ts'

/** Dead letters that are counted; nobody needs to know of more how many exactly. */
const COUNTED_MAX = 10_000

/** A queue for a person and a program to look at. */
export async function viewOf(
  { queue, kv }: Engine,
  record: QueueRecord,
  { work, keptMs }: { readonly work: QueueWork | undefined; readonly keptMs: number },
): Promise<QueueView> {
  const { name, kind, createdAtMs, uid, autoscale, retry } = record
  const depth = await queue.depth(messagesOf(uid))
  const dead = await kv.list(deadPrefix(uid), { limit: COUNTED_MAX })
  const definition = record.function
  const { tasksPerContainer, maxContainers, minContainers, idleMs: idle } = autoscale
  return {
    ...{ name, kind, createdAtMs },
    function: definition && {
      label: definition.label,
      bundle: definition.bundle,
      export: definition.export,
      image: definition.image,
    },
    autoscale: { tasksPerContainer, maxContainers, minContainers, idle },
    retry: { error: retry.error, infra: retry.infra, backoff: retry.backoffMs },
    tasks: {
      ready: depth.ready,
      delayed: depth.delayed,
      running: depth.leased,
      dead: dead.entries.length,
    },
    containers: { starting: work?.fleet.starting ?? 0, ready: work?.fleet.ready ?? 0 },
    retain: keptMs,
    trouble: work?.trouble ?? null,
  }
}
