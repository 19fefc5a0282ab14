import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { parseNetworkHost } from './network-host.ts'

/** A name with or without `*.`, an IPv4 address, or an IPv6 address in brackets; perhaps a port. */
const host = z.string().superRefine((text, context) => {
  const found = parseNetworkHost(text)
  if ('problem' in found) context.addIssue({ code: 'custom', message: found.problem })
})

const hosts = z
  .array(host)
  .max(
    LIMITS.networkHosts,
    `at most ${LIMITS.networkHosts} hosts can be named; *.example.org names all that are below it`,
  )

/**
 * What may be reached from inside. `none`: nothing. `packages`: the package mirrors that the daemon's machine itself uses (apt, pip,
 * npm). `allow`: hosts by name, with `*.` for any name below, ports 80 and 443 unless one is given; `packages: true` adds the mirrors.
 * Private and metadata addresses are refused unless an entry names the address itself.
 */
export const networkPolicy = z.union([
  z.enum(['none', 'packages']),
  z.object({ allow: hosts, packages: z.boolean().optional() }).strict(),
])
export type NetworkPolicy = z.infer<typeof networkPolicy>

/** What a sandbox of a run is used for, one after the other. */
export const NETWORK_PHASES = ['setup', 'agent', 'grade'] as const
export type NetworkPhase = (typeof NETWORK_PHASES)[number]

/**
 * What a sandbox may reach: the phase that is in force, and what each phase allows. A sandbox of no run, or of one whose phases all have
 * `none`, is in `agent`.
 */
export const networkView = z.object({
  phase: z.enum(NETWORK_PHASES),
  allows: z.object({ setup: networkPolicy, agent: networkPolicy, grade: networkPolicy }),
})
export type NetworkView = z.infer<typeof networkView>

/** The policies of a run's phases; a missing one is `none`. */
export const phaseNetwork = z
  .object({
    setup: networkPolicy.optional(),
    agent: networkPolicy.optional(),
    grade: networkPolicy.optional(),
  })
  .strict()
export type PhaseNetwork = z.infer<typeof phaseNetwork>
