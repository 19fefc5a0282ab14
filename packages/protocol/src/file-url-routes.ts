/** Signed URLs of files: part of the table in `routes.ts`. Whoever has one needs no key. */
import { z } from 'zod'
import { sandboxPath } from './files.ts'
import { durationOf } from './quantity.ts'
import type { Route } from './route.ts'

export const FILE_URL_METHODS = ['GET', 'PUT'] as const
export type FileUrlMethod = (typeof FILE_URL_METHODS)[number]

export const fileUrlCreate = z
  .object({
    path: sandboxPath,
    world: z.enum(['main', 'grade']).optional(),
    /** What it is good for: to read the file, or to write it. Default `GET`. */
    method: z.enum(FILE_URL_METHODS).optional(),
    /** Default 10 minutes, at most 7 days. */
    expires: durationOf(1_000, '10 minutes').optional(),
  })
  .strict()

/** Below the address by which a client reaches the daemon. */
export const fileUrl = z.object({ path: z.string(), expiresAtMs: z.number() })
export type FileUrl = z.infer<typeof fileUrl>

export const FILE_URL_ROUTES = {
  createFileUrl: {
    method: 'POST',
    path: '/v1/sandboxes/:id/files/url',
    summary: 'A signed URL by which anybody reads or writes one file for a while',
    body: fileUrlCreate,
    answer: fileUrl,
    status: 200,
  },
  readSignedFile: {
    method: 'GET',
    path: '/signed/files/:token',
    summary: 'Read the file of a signed URL',
    answer: 'bytes',
    status: 200,
  },
  writeSignedFile: {
    method: 'PUT',
    path: '/signed/files/:token',
    summary: 'Write the file of a signed URL',
    body: 'bytes',
    answer: z.object({ sizeBytes: z.number() }),
    status: 200,
  },
} as const satisfies Record<string, Route>
