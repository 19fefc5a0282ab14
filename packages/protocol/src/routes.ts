/**
 * Every HTTP route as data: the server mounts them, the SDK calls them, the OpenAPI document is made from them.
 * Paths below `/v1` need a key (`authorization: Bearer …`). Every mutation takes an `idempotency-key` header: the same key with
 * the same request is answered with the first answer, with another request `idempotency_conflict`.
 */
import { z } from 'zod'
import { AUDIT_ROUTES } from './audit.ts'
import { FILE_ROUTES } from './file-routes.ts'
import { FILE_URL_ROUTES } from './file-url-routes.ts'
import { IMAGE_ROUTES } from './image-routes.ts'
import { KEY_ROUTES } from './key.ts'
import { NETWORK_ROUTES } from './network-routes.ts'
import { OPERATION_ROUTES } from './operation-routes.ts'
import { PORT_ROUTES } from './port.ts'
import { QUEUE_ROUTES } from './queue-routes.ts'
import { page, paged, type Route } from './route.ts'
import { RUN_ROUTES } from './run-routes.ts'
import { SANDBOX_ROUTES } from './sandbox-routes.ts'
import { SECRET_ROUTES } from './secret-routes.ts'
import { SNAPSHOT_ROUTES } from './snapshot-routes.ts'
import { templateCreate, templateView } from './template.ts'
import { USAGE_ROUTES } from './usage.ts'

const text = z.string()

export const SERVING_STATES = ['starting', 'serving', 'draining'] as const
export type ServingState = (typeof SERVING_STATES)[number]

const health = z.object({
  ok: z.boolean(),
  version: text,
  state: z.enum(SERVING_STATES),
  /** Why nothing new is admitted though it serves, such as a disk that is nearly full. Absent while all is well. */
  nothingNew: text.optional(),
  /** What the machine has, and what is promised (requests) and allowed (limits) of it. Absent until it serves. */
  load: z
    .object({
      sandboxes: z.number(),
      /** Cores. */
      cpu: z.object({ total: z.number(), requests: z.number(), limits: z.number() }),
      /** Bytes. `free`: available now; `kept`: so much of it is promised to nobody. */
      memory: z.object({
        ...{ total: z.number(), free: z.number(), kept: z.number() },
        ...{ requests: z.number(), limits: z.number() },
      }),
      /** The sum of limits, in machines. */
      overcommit: z.object({ cpu: z.number(), memory: z.number() }),
    })
    .optional(),
})
export type Health = z.infer<typeof health>

export const ROUTES = {
  health: {
    method: 'GET',
    path: '/healthz',
    summary: 'Whether the daemon serves',
    answer: health,
    status: 200,
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Prometheus metrics',
    answer: 'text',
    status: 200,
  },

  ...SANDBOX_ROUTES,
  ...FILE_ROUTES,
  ...OPERATION_ROUTES,
  ...NETWORK_ROUTES,
  ...PORT_ROUTES,

  ...FILE_URL_ROUTES,
  ...SECRET_ROUTES,
  ...IMAGE_ROUTES,
  ...SNAPSHOT_ROUTES,
  ...QUEUE_ROUTES,

  prepareTemplate: {
    method: 'POST',
    path: '/v1/templates',
    summary: 'Prepare an environment, or find the one of the same content; the log comes as lines',
    body: templateCreate,
    answer: 'lines',
    status: 200,
  },
  listTemplates: {
    method: 'GET',
    path: '/v1/templates',
    summary: 'List templates',
    query: z.object({ ...page, name: text.optional(), tag: z.array(text).optional() }),
    answer: paged(templateView),
    status: 200,
  },
  getTemplate: {
    method: 'GET',
    path: '/v1/templates/:id',
    summary: 'Look at a template, by its id or name',
    answer: templateView,
    status: 200,
  },
  deleteTemplate: {
    method: 'DELETE',
    path: '/v1/templates/:id',
    summary: 'Forget a template; what runs from it goes on',
    answer: 'none',
    status: 204,
  },

  headBlob: {
    method: 'HEAD',
    path: '/v1/blobs/:digest',
    summary: 'Whether a content is there',
    answer: 'none',
    status: 200,
  },
  getBlob: {
    method: 'GET',
    path: '/v1/blobs/:digest',
    summary: 'A content by its digest',
    answer: 'bytes',
    status: 200,
  },
  putBlob: {
    method: 'PUT',
    path: '/v1/blobs/:digest',
    summary: 'Store a content under its digest (sha256:…)',
    body: 'bytes',
    answer: z.object({ digest: text, sizeBytes: z.number() }),
    status: 201,
  },

  ...RUN_ROUTES,

  ...USAGE_ROUTES,
  ...KEY_ROUTES,
  ...AUDIT_ROUTES,

  connect: {
    method: 'GET',
    path: '/v1/connect',
    summary: 'The multiplexed WebSocket',
    answer: 'none',
    status: 101,
  },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES

/** What is asked without a key tells nothing of anybody: health, metrics; or has its right in its address: signed URLs. */
export function needsKey(name: RouteName): boolean {
  return ROUTES[name].path.startsWith('/v1/')
}

/** `/v1/runs/:name` with `{ name: 'a b' }` → `/v1/runs/a%20b`. */
export function routePath(name: RouteName, parameters: Record<string, string> = {}): string {
  return ROUTES[name].path.replace(/:([a-z]+)/g, (_, key: string) => {
    const value = parameters[key]
    if (value === undefined || value === '') throw new RangeError(`the route ${name} needs ${key}`)
    return encodeURIComponent(value)
  })
}
