/** Routes of snapshots and forks: part of the table in `routes.ts`. */
import { z } from 'zod'
import { page, paged, type Route } from './route.ts'
import { forkAnswer, forkCreate, snapshotCreate, snapshotView } from './snapshot.ts'

const flag = z.enum(['true', 'false']).transform((value) => value === 'true')

export const SNAPSHOT_ROUTES = {
  createSnapshot: {
    method: 'POST',
    path: '/v1/sandboxes/:id/snapshots',
    summary: 'Save what a sandbox has become; it goes on',
    body: snapshotCreate,
    answer: snapshotView,
    status: 201,
  },
  forkSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/:id/fork',
    summary: 'Make running copies of a sandbox, a result for each',
    body: forkCreate,
    answer: forkAnswer,
    status: 201,
  },
  listSnapshots: {
    method: 'GET',
    path: '/v1/snapshots',
    summary: 'List snapshots',
    query: z.object({
      ...page,
      name: z.string().optional(),
      tag: z.array(z.string()).optional(),
      /** Also those that are hidden. */
      all: flag.optional(),
    }),
    answer: paged(snapshotView),
    status: 200,
  },
  getSnapshot: {
    method: 'GET',
    path: '/v1/snapshots/:id',
    summary: 'Look at a snapshot, by its id or name',
    answer: snapshotView,
    status: 200,
  },
  deleteSnapshot: {
    method: 'DELETE',
    path: '/v1/snapshots/:id',
    summary: 'Delete a snapshot that nothing uses; with force also one in use',
    query: z.object({ force: flag.optional() }),
    answer: 'none',
    status: 204,
  },
} as const satisfies Record<string, Route>
