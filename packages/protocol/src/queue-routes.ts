/** Routes of task queues: part of the table in `routes.ts`. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { waitInQuery } from './quantity.ts'
import {
  callGroup,
  deadLetter,
  queuePut,
  queueReplay,
  queueResult,
  queueResultsPage,
  queueTasksAdded,
  queueTasksPut,
  queueView,
} from './queue.ts'
import { page, paged, type Route } from './route.ts'

export const QUEUE_ROUTES = {
  putQueue: {
    method: 'PUT',
    path: '/v1/queues/:name',
    summary: 'Make a queue, or change what works on it',
    body: queuePut,
    answer: queueView,
    status: 200,
  },
  listQueues: {
    method: 'GET',
    path: '/v1/queues',
    summary: 'List queues',
    query: z.object(page),
    answer: paged(queueView),
    status: 200,
  },
  getQueue: {
    method: 'GET',
    path: '/v1/queues/:name',
    summary: 'Look at a queue',
    answer: queueView,
    status: 200,
  },
  deleteQueue: {
    method: 'DELETE',
    path: '/v1/queues/:name',
    summary: 'Delete a queue with its tasks, results and dead letters',
    answer: 'none',
    status: 204,
  },
  putQueueTasks: {
    method: 'POST',
    path: '/v1/queues/:name/tasks',
    summary: 'Add tasks to a queue',
    body: queueTasksPut,
    answer: queueTasksAdded,
    status: 200,
  },
  getQueueResults: {
    method: 'GET',
    path: '/v1/queues/:name/results',
    summary: 'Results in the order of their completion, from a cursor; waits for news',
    query: z.object({
      after: z.string().optional(),
      limit: z.coerce.number().int().min(1).max(LIMITS.rowsPerPage).optional(),
      wait: waitInQuery.optional(),
      call: callGroup.optional(),
      /** Number of the next line of what functions print. */
      logs: z.coerce.number().int().min(0).optional(),
    }),
    answer: queueResultsPage,
    status: 200,
  },
  getTaskResult: {
    method: 'GET',
    path: '/v1/queues/:name/results/:task',
    summary: 'How one task ended; null while it has not, and an error where it is not there',
    query: z.object({ wait: waitInQuery.optional(), call: callGroup.optional() }),
    answer: z.object({ result: queueResult.nullable() }),
    status: 200,
  },
  listDeadLetters: {
    method: 'GET',
    path: '/v1/queues/:name/dead',
    summary: 'Tasks that failed after their last retry',
    query: z.object(page),
    answer: paged(deadLetter),
    status: 200,
  },
  replayDeadLetters: {
    method: 'POST',
    path: '/v1/queues/:name/replay',
    summary: 'Put dead letters back into their queue',
    body: queueReplay,
    answer: z.object({ replayed: z.number() }),
    status: 200,
  },
} as const satisfies Record<string, Route>
