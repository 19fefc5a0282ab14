import { z } from 'zod'
import { LIMITS } from './limits.ts'

const host = z
  .string()
  .max(260)
  .regex(
    /^(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?(:([1-9][0-9]{0,4}))?$/i,
    'not a host name such as api.example.org, *.example.org or api.example.org:443',
  )

/**
 * What may be reached from inside. `none`: nothing. `packages`: the package mirrors that the daemon's machine itself uses (apt, pip,
 * npm). `allow`: hosts by name, with `*.` for any name below, ports 80 and 443 unless one is given; `packages: true` adds the mirrors.
 * Private and metadata addresses are refused unless an entry names the address itself.
 */
export const networkPolicy = z.union([
  z.enum(['none', 'packages']),
  z
    .object({ allow: z.array(host).max(LIMITS.networkHosts), packages: z.boolean().optional() })
    .strict(),
])
export type NetworkPolicy = z.infer<typeof networkPolicy>

/** The policies of a run's phases; a missing one is `none`. */
export const phaseNetwork = z
  .object({
    setup: networkPolicy.optional(),
    agent: networkPolicy.optional(),
    grade: networkPolicy.optional(),
  })
  .strict()
export type PhaseNetwork = z.infer<typeof phaseNetwork>
