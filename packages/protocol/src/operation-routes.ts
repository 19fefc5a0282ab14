import { z } from 'zod'
import type { Route } from './route.ts'

/** For who operates a daemon. */
export const OPERATION_ROUTES = {
  backUp: {
    method: 'GET',
    path: '/v1/backup',
    summary:
      'A backup of everything durable, as a tar, while the daemon serves; for the key of its machine alone',
    query: z.object({ images: z.enum(['true', 'false']).optional() }),
    answer: 'bytes',
    status: 200,
  },
} as const satisfies Record<string, Route>
