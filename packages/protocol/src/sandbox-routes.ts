import { z } from 'zod'
import { execAnswer, execRun, execView, terminalSize } from './exec.ts'
import { page, paged, type Route } from './route.ts'
import { SANDBOX_STATES, sandboxCreate, sandboxView } from './sandbox.ts'

const text = z.string()

/** Sandboxes, and the commands that run in them. */
export const SANDBOX_ROUTES = {
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
} as const satisfies Record<string, Route>
