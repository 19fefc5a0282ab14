import { z } from 'zod'
import { LIMITS } from './limits.ts'

const HOST =
  /^(?:(?:\*\.)?(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)*[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?|\[[0-9a-fA-F:.]+\])(?::[1-9][0-9]{0,4})?$/u

/** A name with or without `*.`, an IPv4 address, or an IPv6 address in brackets; perhaps a port. */
const host = z
  .string()
  .max(260)
  .regex(HOST, 'not a host such as api.example.org, *.example.org, api.example.org:443 or [::1]:80')
  .refine(
    (text) => Number(/:([0-9]+)$/.exec(text.replace(/^\[.*\]/, ''))?.[1] ?? 1) <= 65_535,
    'a port is at most 65535',
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

/** What a sandbox of a run is used for, one after the other. */
export const NETWORK_PHASES = ['setup', 'agent', 'grade'] as const
export type NetworkPhase = (typeof NETWORK_PHASES)[number]

/** What a sandbox may reach: the phase that is in force, and what each phase allows. A sandbox of no run is in `agent`. */
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
