/** From a request to a record without any gap. */
import { completeResources, type FunctionSpec, type QueuePut } from '@sandlot/protocol'
import { FUNCTION_LIMITS } from './limits.ts'
import type { FunctionRecord, QueueRecord } from './records.ts'

/** `image`: what `from` stands for; null where it is left out. */
export function functionOf(spec: FunctionSpec, image: string | null): FunctionRecord {
  const { bundle, label, resources, env = {}, network = 'none' } = spec
  return {
    ...{ bundle, label, image, env, network },
    export: spec.export,
    resources: completeResources({ memory: memoryOf(resources), ...resources }),
    timeoutMs: spec.timeout ?? FUNCTION_LIMITS.timeoutMs,
    concurrency: spec.concurrency ?? 1,
    ...(spec.secrets ? { secrets: spec.secrets } : {}),
  }
}

/** What was there stays where nothing is said. */
export function changed(
  before: QueueRecord | Omit<QueueRecord, 'function' | 'autoscale' | 'retry'>,
  { autoscale, retry, retain }: QueuePut,
  definition: FunctionRecord | undefined,
): QueueRecord {
  const was = 'retry' in before ? before : undefined
  const minContainers = autoscale?.minContainers ?? was?.autoscale.minContainers ?? 0
  const most = autoscale?.maxContainers ?? was?.autoscale.maxContainers
  const retries = before.kind === 'calls' ? 0 : FUNCTION_LIMITS.queueRetries
  const next = definition ?? was?.function ?? null
  const retainMs = retain ?? was?.retainMs
  return {
    ...before,
    function: next,
    autoscale: {
      tasksPerContainer:
        autoscale?.tasksPerContainer ?? was?.autoscale.tasksPerContainer ?? next?.concurrency ?? 1,
      maxContainers: most ?? Math.max(FUNCTION_LIMITS.maxContainers, minContainers),
      minContainers,
      idleMs: autoscale?.idle ?? was?.autoscale.idleMs ?? FUNCTION_LIMITS.idleMs,
    },
    retry: {
      error: retry?.error ?? was?.retry.error ?? retries,
      infra: retry?.infra ?? was?.retry.infra ?? retries,
      backoffMs: retry?.backoff ?? was?.retry.backoffMs ?? FUNCTION_LIMITS.backoffMs,
    },
    ...(retainMs === undefined ? {} : { retainMs }),
  }
}

function memoryOf(resources: FunctionSpec['resources']) {
  const limit = resources?.memory?.limit ?? 2 ** 30
  return { request: Math.min(FUNCTION_LIMITS.memoryRequestBytes, limit), limit }
}
