import { z } from 'zod'
import { page, paged, type Route } from './route.ts'
import { secretSet, secretView } from './secret.ts'

/** The secrets of a project. */
export const SECRET_ROUTES = {
  setSecret: {
    method: 'PUT',
    path: '/v1/secrets/:name',
    summary: 'Keep a secret, or another value of it; no route tells it again',
    body: secretSet,
    answer: secretView,
    status: 200,
  },
  listSecrets: {
    method: 'GET',
    path: '/v1/secrets',
    summary: 'List the names of secrets',
    query: z.object(page),
    answer: paged(secretView),
    status: 200,
  },
  deleteSecret: {
    method: 'DELETE',
    path: '/v1/secrets/:name',
    summary: 'Forget a secret; requests that need it are refused from then on',
    answer: 'none',
    status: 204,
  },
} as const satisfies Record<string, Route>
