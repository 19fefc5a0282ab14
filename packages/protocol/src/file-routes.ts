import { z } from 'zod'
import { fileStat, sandboxPath } from './files.ts'
import type { Route } from './route.ts'

const flag = z.enum(['true', 'false']).transform((value) => value === 'true')
const count = z.coerce.number().int()
const inWorld = { world: z.enum(['main', 'grade']).optional() }

/** Files of a sandbox, by path. */
export const FILE_ROUTES = {
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
} as const satisfies Record<string, Route>
