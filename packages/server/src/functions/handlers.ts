import { queueName, SandlotError } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { pageOf } from '../http/page.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { StartPoints } from '../start-points.ts'
import type { Queues } from './queues.ts'

type QueueRoutes =
  | 'putQueue'
  | 'listQueues'
  | 'getQueue'
  | 'deleteQueue'
  | 'putQueueTasks'
  | 'getQueueResults'
  | 'getTaskResult'
  | 'listDeadLetters'
  | 'replayDeadLetters'

export function queueHandlers(
  queues: Queues,
  startPoints: StartPoints,
  secrets: Secrets,
): Pick<Handlers, QueueRoutes> {
  return {
    putQueue: async ({ caller, params, body }) => {
      const name = queueName.safeParse(params.name)
      if (!name.success) throw notAName(params.name)
      if (body.function) await secrets.checkFunction(caller.project, body.function)
      const from = body.function?.from
      const image = from === undefined ? null : await startPoints.image(caller.project, from)
      return await queues.put(caller.project, name.data, body, image)
    },
    listQueues: async ({ caller, query }) => {
      const all = await queues.list(caller.project)
      const { items, next } = pageOf(
        all.map((view) => ({ id: view.name, createdAtMs: view.createdAtMs, view })),
        query,
      )
      return { items: items.map(({ view }) => view), next }
    },
    getQueue: ({ caller, params }) => queues.get(caller.project, params.name ?? ''),
    deleteQueue: async ({ caller, params }) => {
      await queues.delete(caller.project, params.name ?? '')
      return undefined
    },
    putQueueTasks: async ({ caller, params, body }) => ({
      tasks: await queues.putTasks(caller.project, params.name ?? '', body),
    }),
    getQueueResults: ({ caller, params, query, signal }) =>
      queues.results(caller.project, params.name ?? '', query, signal),
    getTaskResult: async ({ caller, params, query, signal }) => {
      const wanted = { ...query, task: params.task ?? '' }
      return { result: await queues.result(caller.project, params.name ?? '', wanted, signal) }
    },
    listDeadLetters: ({ caller, params, query }) =>
      queues.dead(caller.project, params.name ?? '', query),
    replayDeadLetters: async ({ caller, params, body }) => ({
      replayed: await queues.replay(caller.project, params.name ?? '', body.tasks),
    }),
  }
}

function notAName(text: string | undefined): SandlotError {
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  return new SandlotError('invalid_request', `${shown} is not a name for a queue`, {
    hint: 'It has letters, digits, dots, dashes and underscores, begins with a letter or digit, and is at most 120 characters long.',
  })
}
