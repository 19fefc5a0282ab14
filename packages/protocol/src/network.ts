import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { parseNetworkHost } from './network-host.ts'
import { sizeBytes } from './quantity.ts'

/** A name with or without `*.`, an address, or a network; perhaps a port or a range of them. */
export const networkHost = z.string().superRefine((text, context) => {
  const found = parseNetworkHost(text)
  if ('problem' in found) context.addIssue({ code: 'custom', message: found.problem })
})

const hosts = z
  .array(networkHost)
  .max(
    LIMITS.networkHosts,
    `at most ${LIMITS.networkHosts} hosts can be named; *.example.org names all that are below it`,
  )

const count = (most: number) => z.number().int().min(1).max(most)

/**
 * What a sandbox may do of what is allowed. A connection or request beyond a limit is refused by the limit's name, and the sandbox gets
 * the flag `network`.
 */
export const networkLimits = z
  .object({
    /** Connections that are open at once. Default, and at most, 128. */
    connections: count(LIMITS.networkConnections).optional(),
    /** Connections and requests in a minute, also those that are refused. Default, and at most, 6,000. */
    connectionsPerMinute: count(LIMITS.networkConnectionsPerMinute).optional(),
    /** Sent and received in the sandbox's life, both together: a size, or bytes. Default: no end. */
    bytes: sizeBytes.optional(),
    /** Sent and received in a second, both together and over all connections; more waits. Default: as fast as it goes. */
    bytesPerSecond: sizeBytes
      .refine((bytes) => bytes >= LIMITS.networkBytesPerSecondMin, {
        message: `slower than ${LIMITS.networkBytesPerSecondMin} bytes a second, the least that is possible`,
      })
      .optional(),
  })
  .strict()
export type NetworkLimits = z.output<typeof networkLimits>

const networkLimitsShown = z.object({
  connections: z.number().optional(),
  connectionsPerMinute: z.number().optional(),
  bytes: z.number().optional(),
  bytesPerSecond: z.number().optional(),
})

/** The limits that hold, none of them left out; null: no end. */
export const networkLimitsInForce = z.object({
  connections: z.number(),
  connectionsPerMinute: z.number(),
  bytes: z.number().nullable(),
  bytesPerSecond: z.number().nullable(),
})
export type NetworkLimitsInForce = z.infer<typeof networkLimitsInForce>

const allowed = { allow: hosts, packages: z.boolean().optional() }

/**
 * What may be reached from inside. `none`: nothing. `packages`: the package mirrors that the daemon's machine itself uses (apt, pip,
 * npm). `allow`: hosts by name, with `*.` for any name below, addresses and networks; ports 80 and 443 unless others are given;
 * `packages: true` adds the mirrors. Private addresses are refused unless an entry names the address or a network of it; those of the
 * machine itself, loopback, link-local and metadata addresses unless an entry is the address.
 */
export const networkPolicy = z.union([
  z.enum(['none', 'packages']),
  z.object({ ...allowed, limits: networkLimits.optional() }).strict(),
])
export type NetworkPolicy = z.output<typeof networkPolicy>
export type NetworkPolicyInput = z.input<typeof networkPolicy>

/** A policy as it is told: its sizes in bytes. */
export const networkPolicyShown: z.ZodType<NetworkPolicy> = z.union([
  z.enum(['none', 'packages']),
  z.object({ ...allowed, limits: networkLimitsShown.optional() }),
])

/**
 * What a sandbox is given: a policy for its proxy, or `open`: a real interface, by which programs that know no proxy reach public
 * addresses by TCP and UDP. Private and metadata addresses, the machine itself and other sandboxes are never reached. It is fixed
 * when the sandbox is created, which starts cold and can't have its memory saved.
 */
export const networkChoice = z.union([z.literal('open'), networkPolicy])
export type NetworkChoice = z.output<typeof networkChoice>
export type NetworkChoiceInput = z.input<typeof networkChoice>

const networkChoiceShown: z.ZodType<NetworkChoice> = z.union([
  z.literal('open'),
  networkPolicyShown,
])

/** What a sandbox of a run is used for, one after the other. */
export const NETWORK_PHASES = ['setup', 'agent', 'grade'] as const
export type NetworkPhase = (typeof NETWORK_PHASES)[number]

/**
 * What a sandbox may reach: the phase that is in force, and what each phase allows. A sandbox of no run, or of one whose phases all have
 * `none`, is in `agent`.
 */
export const networkView = z.object({
  phase: z.enum(NETWORK_PHASES),
  allows: z.object({
    setup: networkChoiceShown,
    agent: networkChoiceShown,
    grade: networkChoiceShown,
  }),
})
export type NetworkView = z.infer<typeof networkView>

/** The policies of a run's phases; a missing one is `none`. `open` is of all of them or of none. */
export const phaseNetwork = z
  .object({
    setup: networkChoice.optional(),
    agent: networkChoice.optional(),
    grade: networkChoice.optional(),
  })
  .strict()
  .refine(agreesOnOpen, {
    message:
      "an open network is the sandbox's from its start to its end: give it to all phases, { setup: 'open', agent: 'open', grade: 'open' }, or to none",
  })
export type PhaseNetwork = z.output<typeof phaseNetwork>

type Phases = { readonly [K in NetworkPhase]?: NetworkChoice | undefined }

/** Whether a sandbox of these phases has a real interface. */
export function isOpenNetwork(network: Phases): boolean {
  return NETWORK_PHASES.every((phase) => network[phase] === 'open')
}

/** What its proxy allows in a phase: a sandbox with an interface of its own has none. */
export function relayPolicy(network: Phases, phase: NetworkPhase): NetworkPolicy {
  const choice = network[phase] ?? 'none'
  return choice === 'open' ? 'none' : choice
}

function agreesOnOpen(network: Phases): boolean {
  return isOpenNetwork(network) || NETWORK_PHASES.every((phase) => network[phase] !== 'open')
}

/** `PUT /v1/sandboxes/:id/network`. */
export const networkSet = z.object({ policy: networkPolicy }).strict()

/** What decides at this moment, told by what decides. */
export const networkInForce = z.object({
  phase: z.enum(NETWORK_PHASES),
  policy: networkPolicyShown,
  limits: networkLimitsInForce,
  /** Connections to other hosts that are open. */
  connections: z.number(),
  /** Sent and received since its beginning. */
  bytes: z.number(),
})
export type NetworkInForce = z.infer<typeof networkInForce>
