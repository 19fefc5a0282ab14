/**
 * Every HTTP route as data: the server mounts them, the SDK calls them, the OpenAPI document is made from them.
 * Paths below `/v1` need a key (`authorization: Bearer …`). Every mutation takes an `idempotency-key` header: the same key with
 * the same request is answered with the first answer, with another request `idempotency_conflict`.
 */
import { z } from 'zod'
import { AUDIT_ROUTES } from './audit.ts'
import { execAnswer, execRun, execView, terminalSize } from './exec.ts'
import { FILE_URL_ROUTES } from './file-url-routes.ts'
import { fileStat, sandboxPath } from './files.ts'
import { IMAGE_ROUTES } from './image-routes.ts'
import { KEY_ROUTES } from './key.ts'
import { NETWORK_ROUTES } from './network-routes.ts'
import { OPERATION_ROUTES } from './operation-routes.ts'
import { PORT_ROUTES } from './port.ts'
import { QUEUE_ROUTES } from './queue-routes.ts'
import { page, paged, type Route } from './route.ts'
import { RUN_ROUTES } from './run-routes.ts'
import { SANDBOX_STATES, sandboxCreate, sandboxView } from './sandbox.ts'
import { SECRET_ROUTES } from './secret-routes.ts'
import { SNAPSHOT_ROUTES } from './snapshot-routes.ts'
import { templateCreate, templateView } from './template.ts'
import { USAGE_ROUTES } from './usage.ts'

const text = z.string()
const flag = z.enum(['true', 'false']).transform((value) => value === 'true')
const count = z.coerce.number().int()
const inWorld = { world: z.enum(['main', 'grade']).optional() }

export const SERVING_STATES = ['starting', 'serving', 'draining'] as const
export type ServingState = (typeof SERVING_STATES)[number]

const health = z.object({
  ok: z.boolean(),
  version: text,
  state: z.enum(SERVING_STATES),
  /** Why nothing new is admitted though it serves, such as a disk that is nearly full. Absent while all is well. */
  nothingNew: text.optional(),
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

  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Start a sandbox',
    body: sandboxCreate,
    answer: sandboxView,
    status: 201,
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    summary: 'List sandboxes',
    query: z.object({
      ...page,
      state: z.enum(SANDBOX_STATES).optional(),
      tag: z.array(text).optional(),
    }),
    answer: paged(sandboxView),
    status: 200,
  },
  getSandbox: {
    method: 'GET',
    path: '/v1/sandboxes/:id',
    summary: 'Look at a sandbox',
    answer: sandboxView,
    status: 200,
  },
  stopSandbox: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id',
    summary: 'Stop a sandbox with all that runs in it',
    answer: sandboxView,
    status: 200,
  },

  pauseSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/:id/pause',
    summary: 'Save the memory of a sandbox to disk, and end it until it is resumed',
    answer: sandboxView,
    status: 200,
  },
  resumeSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/:id/resume',
    summary: 'Let a paused sandbox go on',
    answer: sandboxView,
    status: 200,
  },

  runExec: {
    method: 'POST',
    path: '/v1/sandboxes/:id/exec',
    summary: 'Run a command to its end',
    body: execRun,
    answer: execAnswer,
    status: 200,
  },
  listExecs: {
    method: 'GET',
    path: '/v1/sandboxes/:id/execs',
    summary: 'List the commands of a sandbox',
    answer: paged(execView),
    status: 200,
  },
  killExec: {
    method: 'POST',
    path: '/v1/sandboxes/:id/execs/:exec/kill',
    summary: 'Signal a command and all it started',
    body: z.object({ signal: z.number().int().min(1).max(64).optional() }).strict(),
    answer: z.object({ processes: z.number() }),
    status: 200,
  },
  resizeExec: {
    method: 'POST',
    path: '/v1/sandboxes/:id/execs/:exec/resize',
    summary: 'Change the size of a command’s terminal',
    body: terminalSize,
    answer: terminalSize,
    status: 200,
  },
  readLog: {
    method: 'GET',
    path: '/v1/sandboxes/:id/execs/:exec/output',
    summary: 'What the rings still hold of a command’s output, as bytes',
    query: z.object({ channel: z.enum(['stdout', 'stderr']).optional() }),
    answer: 'bytes',
    status: 200,
  },

  readFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files',
    summary: 'Read a file',
    query: z.object({
      ...inWorld,
      path: sandboxPath,
      offset: count.min(0).optional(),
      length: count.min(0).optional(),
    }),
    answer: 'bytes',
    status: 200,
  },
  writeFile: {
    method: 'PUT',
    path: '/v1/sandboxes/:id/files',
    summary: 'Write a file',
    query: z.object({
      ...inWorld,
      path: sandboxPath,
      mode: count.min(0).max(0o7777).optional(),
      append: flag.optional(),
      exclusive: flag.optional(),
    }),
    body: 'bytes',
    answer: z.object({ sizeBytes: z.number() }),
    status: 200,
  },
  removeFile: {
    method: 'DELETE',
    path: '/v1/sandboxes/:id/files',
    summary: 'Remove a file or directory',
    query: z.object({
      ...inWorld,
      path: sandboxPath,
      recursive: flag.optional(),
      force: flag.optional(),
    }),
    answer: 'none',
    status: 204,
  },
  statFile: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/stat',
    summary: 'Look at a file',
    query: z.object({ ...inWorld, path: sandboxPath, follow: flag.optional() }),
    answer: fileStat,
    status: 200,
  },
  listFiles: {
    method: 'GET',
    path: '/v1/sandboxes/:id/files/list',
    summary: 'List a directory, one entry a line',
    query: z.object({ ...inWorld, path: sandboxPath }),
    answer: 'lines',
    status: 200,
  },
  makeDirectory: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/directory',
    summary: 'Make a directory',
    body: z
      .object({
        ...inWorld,
        path: sandboxPath,
        parents: z.boolean().optional(),
        mode: z.number().int().min(0).max(0o7777).optional(),
      })
      .strict(),
    answer: 'none',
    status: 204,
  },
  renameFile: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/rename',
    summary: 'Rename a file or directory',
    body: z.object({ ...inWorld, from: sandboxPath, to: sandboxPath }).strict(),
    answer: 'none',
    status: 204,
  },
  changeMode: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/mode',
    summary: 'Set permission bits',
    body: z
      .object({ ...inWorld, path: sandboxPath, mode: z.number().int().min(0).max(0o7777) })
      .strict(),
    answer: 'none',
    status: 204,
  },
  downloadTree: {
    method: 'GET',
    path: '/v1/sandboxes/:id/tree',
    summary: 'A directory’s content as a tar',
    query: z.object({ ...inWorld, path: sandboxPath }),
    answer: 'bytes',
    status: 200,
  },
  uploadTree: {
    method: 'PUT',
    path: '/v1/sandboxes/:id/tree',
    summary: 'Unpack a tar below a directory',
    query: z.object({ ...inWorld, path: sandboxPath }),
    body: 'bytes',
    answer: z.object({ entries: z.number() }),
    status: 200,
  },

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
