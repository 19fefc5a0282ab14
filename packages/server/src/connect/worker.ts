import {
  invalidRequest,
  type WorkerEventFromClient,
  workerEventFromClient,
} from '@sandlot/protocol'
import { type PayloadMap, StreamCancelled } from '@sandlot/protocol/frames'
import type { WorkerStream } from '../coordinator/port.ts'
import type { Operation } from './session.ts'

/** A worker's leases: the stream is handed to the coordinator until the run is over or the worker goes. */
export const worker: Operation<'worker'> = async (stream, request, session) => {
  const { coordinator, caller, log } = session
  const early: WorkerEventFromClient[] = []
  let attached: WorkerStream | undefined
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => {})
  stream.onEvent = (payload) => {
    const parsed = workerEventFromClient.safeParse(payload)
    if (!parsed.success) broken.reject(invalidRequest('event', parsed.error))
    else if (attached) attached.receive(parsed.data)
    else early.push(parsed.data)
  }
  const { run, worker: id, slots, held } = request
  const send = (event: PayloadMap) => {
    try {
      stream.event(event)
    } catch (error) {
      log.error({ err: error, worker: id }, 'an event did not fit a frame')
    }
  }
  attached = await coordinator.attachWorker(
    caller.project,
    { run, worker: id, slots, held },
    { send },
  )
  for (const event of early) attached.receive(event)
  const gone = Promise.withResolvers<never>()
  gone.promise.catch(() => {})
  stream.signal.addEventListener('abort', () => gone.reject(stream.signal.reason), { once: true })
  if (stream.signal.aborted) gone.reject(stream.signal.reason)
  try {
    await Promise.race([attached.done, gone.promise, broken.promise])
    return {}
  } catch (error) {
    if (error instanceof StreamCancelled) attached.left()
    else attached.lost()
    throw error
  }
}
