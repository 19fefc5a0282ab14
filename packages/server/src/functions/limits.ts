/** Bounds of functions and queues. Sizes in bytes, times in milliseconds. */
export const FUNCTION_LIMITS = {
  /** A task that is worked on is kept from others by leases that are renewed: a daemon that is killed gives it back after so long. */
  leaseMs: 15_000,
  renewMs: 5_000,
  /** How long one look for tasks waits, and how many it takes. */
  leaseWaitMs: 10_000,
  leasesAtOnce: 500,
  /** How often it is looked whether there are enough containers, or too many. */
  lookMs: 250,
  /** A container waits for room among the sandboxes, then comes up. */
  roomMs: 30_000,
  readyMs: 60_000,
  /** First wait after a container that did not come up; doubled each time up to the second. */
  againMs: 500,
  againMsMax: 30_000,
  /** Containers in a row that the platform failed to bring up, after which calls are told so. */
  failuresMax: 5,
  /** Containers of one queue that come up at once. */
  startingAtOnce: 16,
  /** What an input may take where nothing is said. */
  timeoutMs: 300_000,
  idleMs: 60_000,
  maxContainers: 8,
  queueRetries: 2,
  backoffMs: 1_000,
  /** What a container asks for where nothing is said: Node.js takes more than other programs. */
  memoryRequestBytes: 96 * 2 ** 20,
  /** A value that the runner sends in a frame; longer ones are files. */
  inlineBytes: 24 * 2 ** 10,
  payloadBytes: 64 * 2 ** 20,
  bundleBytes: 64 * 2 ** 20,
  /** One line of the runner's output. */
  frameChars: 256 * 2 ** 10,
  /** The last that a container printed, in the error of what ended it. */
  tailChars: 2_000,
  /** Of an error's name, message and stack. */
  nameChars: 200,
  messageChars: 4_096,
  stackChars: 16_384,
  /** Lines that are kept for one caller, and callers that have any. */
  logLines: 2_000,
  logChars: 256 * 2 ** 10,
  logCallers: 64,
  readers: 10_000,
  queues: 10_000,
  resultsPerPage: 100,
  /** How long results are kept where nothing is said: those of queues, and of calls. */
  resultsMs: 7 * 24 * 3_600_000,
  callResultsMs: 24 * 3_600_000,
  sweepMs: 600_000,
  /** Results that become durable in one commit. */
  appendBytes: 192 * 2 ** 10,
  appendRecords: 1_000,
  appendRetryMs: 500,
} as const
