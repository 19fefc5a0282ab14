import { z } from 'zod'
import { NETWORK_PHASES } from './network.ts'

/** What was spoken inside: a request for an `http://` address, a tunnel, SOCKS 5, or packets of an `open` network. */
export const NETWORK_PROTOCOLS = ['http', 'connect', 'socks', 'tcp', 'udp'] as const
export type NetworkProtocol = (typeof NETWORK_PROTOCOLS)[number]

/** Why a connection or request from inside came to nothing. */
export const NETWORK_REFUSALS = [
  /** The policy names no such host. */
  'not_allowed',
  /** The policy allows the name, and it leads to an address that no name may lead to. */
  'private_address',
  /** A request in a tunnel whose TLS the daemon ends is for another host than the tunnel. */
  'other_name',
  /** TLS in a tunnel begins for another server than the tunnel is to, or can't be read. */
  'other_server',
  /** `limits.connections`. */
  'limit',
  /** `limits.connectionsPerMinute`. */
  'rate_limit',
  /** `limits.bytes`. */
  'bytes_limit',
  /** A secret that the request needs is not set any more, or can't be opened. */
  'secret',
  /** No address of that name. */
  'unresolved',
  /** Nobody answers there. */
  'unreachable',
  'timeout',
  /** No request that a proxy answers. */
  'invalid',
] as const
export type NetworkRefusal = (typeof NETWORK_REFUSALS)[number]

const base = {
  /** Place in the log of this sandbox, from 1 on, without gaps. */
  seq: z.number(),
  atMs: z.number(),
}

const connection = {
  ...base,
  /** `host:port`; empty where none was named. */
  target: z.string(),
  protocol: z.enum(NETWORK_PROTOCOLS),
  phase: z.enum(NETWORK_PHASES),
}

/** One line of a sandbox's log of connections. A connection that was allowed has two: `opened`, and `closed` with what came of it. */
export const networkLogEntry = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('refused'),
    ...connection,
    reason: z.enum(NETWORK_REFUSALS),
    /** For a person. */
    detail: z.string(),
  }),
  z.object({
    kind: z.literal('opened'),
    ...connection,
    /** The entry of `allow` that allows it, as it was written, or `packages`. */
    rule: z.string(),
    /** The address that was dialled. */
    address: z.string(),
  }),
  z.object({
    kind: z.literal('closed'),
    ...connection,
    /** `seq` of its `opened`. */
    opened: z.number(),
    sentBytes: z.number(),
    receivedBytes: z.number(),
    durationMs: z.number(),
    /** Variables whose secrets were put in. */
    secrets: z.array(z.string()).optional(),
  }),
  /** The policy was set while it ran, or the phase is another now. */
  z.object({ kind: z.literal('policy'), ...base, phase: z.enum(NETWORK_PHASES) }),
  /** So many lines are not here: they came faster than they are kept, or are the oldest of many. */
  z.object({ kind: z.literal('dropped'), ...base, count: z.number() }),
])
export type NetworkLogEntry = z.infer<typeof networkLogEntry>

export const networkLogPage = z.object({
  items: z.array(networkLogEntry),
  /** `from` of the next page. */
  next: z.number(),
  /** The sandbox has ended, and nothing comes after `next`. */
  over: z.boolean(),
})
export type NetworkLogPage = z.infer<typeof networkLogPage>
