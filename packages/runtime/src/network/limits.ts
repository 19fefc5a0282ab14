import { LIMITS } from '@sandlot/protocol'

/** Every bound of the way out of a sandbox. */
export const NETWORK_LIMITS = {
  /** Where the agent listens in the sandbox: above the ports that a kernel gives to whoever asks for none. */
  port: 61_080,
  /** Connections of one sandbox at once, and in a minute with those that are refused: what holds where a policy asks for less. */
  connections: LIMITS.networkConnections,
  connectionsPerMinute: LIMITS.networkConnectionsPerMinute,
  /** How long one beyond that waits for its refusal: a loop that ignores refusals turns no faster. */
  rateRefusalMs: 500,
  /** Requests on one connection that are not answered yet; apt sends ten ahead. */
  pipelined: 16,
  /** What a bounded rate lets through at once, as a part of a second. */
  paceShare: 0.1,
  /** Connections beyond that which are told so, and how long each has to ask. The agent brings no more than both together. */
  refusals: 64,
  refusalMs: 10_000,
  /** Names are resolved and an address answers. */
  dialMs: 15_000,
  /** Names of one sandbox that are looked up at once; more wait for their turn. */
  lookups: 8,
  /** A name, from the request to its addresses; the wait for a turn is part of it. */
  lookupMs: 10_000,
  /** One name server, the first time that it is asked, and how often each is. */
  nameServerMs: 2_000,
  nameServerTries: 2,
  /** How long the machine's hosts file is taken as it was read. */
  hostsMs: 5_000,
  /** From a connection, or the end of an answer, to the next request. */
  requestMs: 60_000,
  /** Nothing moved on a connection in either direction. */
  idleMs: 600_000,
  /** The hello of TLS in a tunnel, with what may come before it, and records that it may be cut into. */
  helloBytes: 2 ** 16,
  helloRecords: 16,
  /** One name of a target. */
  nameLength: 253,
  /** Addresses of one name that are looked at. */
  addresses: 32,
  /** Certificates of one project that are kept in memory, how long each is good for and is used, and its authority. */
  certificates: 256,
  certificateDays: 30,
  certificateRenewMs: 14 * 86_400_000,
  authorityDays: 3_650,
  /** A file with settings of the machine. */
  settingsBytes: 2 ** 20,
  /** How long the machine's settings are taken as they were read. */
  settingsMs: 60_000,
  /** Addresses drawn for a sandbox with an interface of its own until one is free. */
  addressTries: 64,
  /** Targets of dropped packets that are remembered until they are told, of all sandboxes, and how long after the last packet. */
  refusedTargets: 4_096,
  refusedMs: 300_000,
  /** One call of `ip` or `nft`. */
  programMs: 10_000,
} as const
