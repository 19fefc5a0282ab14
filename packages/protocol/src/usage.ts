/** What sandboxes were given, used and cost: metered from the moment their world is ready for the owner to their end. */
import { z } from 'zod'
import type { Route } from './route.ts'

export const USAGE_BY = ['run', 'day', 'project'] as const
export type UsageBy = (typeof USAGE_BY)[number]

/** What a metered sandbox was for. */
export const USAGE_KINDS = ['episode', 'sandbox', 'build', 'function'] as const
export type UsageKind = (typeof USAGE_KINDS)[number]

const metered = z.object({
  sandboxes: z.number(),
  /** Of all sandboxes together. */
  seconds: z.number(),
  /** What they asked for, times the seconds. Disk where it is the machine's own, not memory. */
  allocated: z.object({
    cpuSeconds: z.number(),
    memoryGibSeconds: z.number(),
    diskGibSeconds: z.number(),
    /** Of each GPU. */
    gpuSeconds: z.number(),
  }),
  /** What they took of it, as far as they have ended. */
  used: z.object({ cpuSeconds: z.number(), networkBytes: z.number() }),
  /** Whole millionths of the currency. null: there was no price table. */
  costMicros: z.number().int().nullable(),
})
export type Metered = z.infer<typeof metered>

export const usageLine = metered.extend({
  /** Empty: no project's, as the steps of builds, which run once for all that ask for the same. */
  project: z.string(),
  /** UTC, `2026-11-30`; by day alone. */
  day: z.string().optional(),
  /** By run alone: what the sandboxes were for, and of episodes the name of their run. */
  kind: z.enum(USAGE_KINDS).optional(),
  run: z.string().optional(),
  /** What of it went to second attempts of episodes, and later ones. */
  retries: metered,
})
export type UsageLine = z.infer<typeof usageLine>

/** `GET /v1/usage`. */
export const usageReport = z.object({
  /** Whole hours: what was asked for, widened to them. */
  from: z.string(),
  to: z.string(),
  by: z.enum(USAGE_BY),
  /** Of the prices as they are now; null where there are none. */
  currency: z.string().nullable(),
  lines: z.array(usageLine),
  total: metered.extend({ retries: metered }),
  /** What waited for owners in the pool and is nobody’s: told to the machine’s own key. Memory is what it takes. */
  idle: z.object({ sandboxSeconds: z.number(), memoryGibSeconds: z.number() }).optional(),
})
export type UsageReport = z.infer<typeof usageReport>

/** What a run has cost: whole millionths of the currency. */
export const runCost = z.object({
  currency: z.string(),
  micros: z.number().int(),
  /** Of it: attempts that were not the first of their episodes. */
  retriesMicros: z.number().int(),
})

const time = z.union([
  z.iso.datetime({ offset: true, error: 'not a time such as 2026-11-30T12:00:00Z' }),
  z.iso.date(),
])

export const USAGE_ROUTES = {
  getUsage: {
    method: 'GET',
    path: '/v1/usage',
    summary: 'What sandboxes were given, used and cost',
    query: z.object({
      /** Default: 30 days before `to`. */
      from: time.optional(),
      /** Default: now. */
      to: time.optional(),
      by: z.enum(USAGE_BY).optional(),
    }),
    answer: usageReport,
    status: 200,
  },
} as const satisfies Record<string, Route>
