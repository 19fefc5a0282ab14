/** A second attempt beside one that takes unusually long. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { durationOrQuantile, type Quantile } from './quantity.ts'

export const HEDGE_PHASES = ['create', 'setup', 'agent'] as const
export type HedgePhase = (typeof HEDGE_PHASES)[number]

/** With every default filled in. */
export interface HedgeRule {
  /** A phase that takes longer is begun a second time: a duration, or a quantile of what the phase takes in this run. */
  readonly after: number | Quantile
  readonly phases: readonly HedgePhase[]
}

/** The agent's part is hedged only where it is named: whoever answers first counts then, and that is no fair draw of the policy. */
const PHASES_DEFAULT: readonly HedgePhase[] = ['create', 'setup']

export const hedgeSpec = z
  .object({
    after: durationOrQuantile(LIMITS.phaseMsMin),
    phases: z.array(z.enum(HEDGE_PHASES)).min(1).max(HEDGE_PHASES.length).optional(),
  })
  .strict()
  .transform(
    ({ after, phases }): HedgeRule => ({
      after,
      phases: HEDGE_PHASES.filter((phase) => (phases ?? PHASES_DEFAULT).includes(phase)),
    }),
  )
