/** Every bound of the way out of a sandbox. */
export const NETWORK_LIMITS = {
  /** Where the agent listens in the sandbox: above the ports that a kernel gives to whoever asks for none. */
  port: 61_080,
  /** Connections of one sandbox at once; more are answered 503. */
  connections: 128,
  /** Names are resolved and an address answers. */
  dialMs: 15_000,
  /** From a connection, or the end of an answer, to the next request. */
  requestMs: 60_000,
  /** Nothing moved on a connection in either direction. */
  idleMs: 600_000,
  /** One name of a target. */
  nameLength: 253,
  /** Addresses of one name that are looked at. */
  addresses: 32,
  /** Different targets of one sandbox that are logged; all are counted. */
  loggedTargets: 256,
  /** A file with settings of the machine. */
  settingsBytes: 2 ** 20,
  /** How long the machine's settings are taken as they were read. */
  settingsMs: 60_000,
} as const
