/** Keys of the API: who may do what, in which project. Their text is shown once, where they are created, and kept nowhere. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { durationOf } from './quantity.ts'
import { page, paged, type Route } from './route.ts'
import { wholeText } from './whole-text.ts'

/** What a key allows: `read` looks, `run` also starts and stops, `admin` also removes what others use. Each includes the ones before. */
export const SCOPES = ['read', 'run', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** Projects know nothing of one another. One is there as soon as a key names it. */
export const projectName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,62}$/,
    'a project has 1 to 63 lower-case letters, digits, and . _ - between them',
  )

export const keyCreate = z
  .object({
    scope: z.enum(SCOPES),
    /** Default: that of the key that asks. Of another project only the machine's own key makes keys. */
    project: projectName.optional(),
    /** For people: what it is for. */
    name: wholeText.min(1).max(LIMITS.nameLength).optional(),
    /** How long it is good. Default: until it is revoked. */
    expires: durationOf(LIMITS.lifeMsMin, 'a key that is good until it is revoked')
      .refine((ms) => ms <= LIMITS.keyMsMax, 'longer than ten years')
      .optional(),
  })
  .strict()
export type KeyCreate = z.input<typeof keyCreate>

export const keyView = z.object({
  /** `ky_…`, or `local` for the machine's own. */
  id: z.string(),
  name: z.string().nullable(),
  project: z.string(),
  scope: z.enum(SCOPES),
  createdAtMs: z.number(),
  /** null: until it is revoked. */
  expiresAtMs: z.number().nullable(),
})
export type KeyView = z.infer<typeof keyView>

/** With its text, `sk_…`: shown this once. */
export const keyCreated = keyView.extend({ key: z.string() })
export type KeyCreated = z.infer<typeof keyCreated>

export const KEY_ROUTES = {
  createKey: {
    method: 'POST',
    path: '/v1/keys',
    summary: 'Create a key; its text is shown this once',
    body: keyCreate,
    answer: keyCreated,
    status: 201,
  },
  listKeys: {
    method: 'GET',
    path: '/v1/keys',
    summary: 'List keys, without their texts',
    query: z.object(page),
    answer: paged(keyView),
    status: 200,
  },
  revokeKey: {
    method: 'DELETE',
    path: '/v1/keys/:id',
    summary: 'Revoke a key; what is connected by it ends',
    answer: 'none',
    status: 204,
  },
} as const satisfies Record<string, Route>
