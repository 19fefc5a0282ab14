/** Ports: what programs in a sandbox listen on, reached through the daemon. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { durationMs, durationOf } from './quantity.ts'
import { paged, type Route } from './route.ts'

export const portNumber = z.number().int().min(1).max(65_535)

/** A port that something listens on. */
export const portView = z.object({
  port: portNumber,
  /** Where, as text: `0.0.0.0`, `127.0.0.1`, `::`, … */
  addresses: z.array(z.string()),
  /** Whether one of them is reached from outside: those of all interfaces, and the loopback's 127.0.0.1 and ::1. */
  reachable: z.boolean(),
})
export type PortView = z.infer<typeof portView>

export const portUrlCreate = z
  .object({
    port: portNumber,
    /** How long the URL is good, at most 7 days. It ends with the sandbox in any case. Default: an hour. */
    expires: durationOf(LIMITS.lifeMsMin, 'an hour').default(60 * 60_000),
    /** Path and query that it leads to. Default `/`. */
    path: z
      .string()
      .max(LIMITS.pathBytes)
      .regex(/^\/[!-~]*$/, 'begins with / and has neither spaces nor other characters than ASCII')
      .default('/'),
  })
  .strict()
export type PortUrlCreate = z.output<typeof portUrlCreate>
export type PortUrlCreateInput = z.input<typeof portUrlCreate>

export const portUrl = z.object({
  /** Good without a key for whoever has it, in a browser as in a program. */
  url: z.string(),
  /**
   * The same with a host name of its own, as a browser is led to it: paths from the root, cookies and storage are the server's. Null where
   * the daemon has no names for ports.
   */
  originUrl: z.string().nullable(),
  expiresAtMs: z.number(),
})
export type PortUrl = z.infer<typeof portUrl>

/** How long a wait for a port lasts where nothing is said. */
export const portWaitMs = durationMs
  .refine((ms) => ms <= LIMITS.portWaitMs, { error: 'longer than an hour' })
  .default(60_000)

export const PORT_ROUTES = {
  listPorts: {
    method: 'GET',
    path: '/v1/sandboxes/:id/ports',
    summary:
      'What programs in a sandbox listen on. Below `/v1/sandboxes/:id/ports/:port/` any request goes to the port itself',
    answer: paged(portView),
    status: 200,
  },
  signPortUrl: {
    method: 'POST',
    path: '/v1/sandboxes/:id/ports/url',
    summary: 'A URL that leads to a port without a key, for a time',
    body: portUrlCreate,
    answer: portUrl,
    status: 200,
  },
} as const satisfies Record<string, Route>
