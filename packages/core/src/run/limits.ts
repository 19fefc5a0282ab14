/** Every bound of core, with the reason for its size. Times are in milliseconds. */
export const limits = {
  /** A worker that has not been heard for this long has died, and its leases with it. */
  leaseTtlMs: 60_000,
  /** A heartbeat is recorded only when the last recorded one is this old: a third of the TTL. */
  renewEveryMs: 20_000,
  /** A release that was not confirmed is asked for again after this long … */
  teardownMs: 30_000,
  /** … this many times in all; after that the node ends the sandbox by itself, for want of an owner. */
  releaseTries: 3,
  /** An episode that held this many workers that died is taken to be what kills them. */
  workersLost: 3,
  /** First wait before a retry of infrastructure or model; doubled each time up to the second. */
  retryDelayMs: 500,
  retryDelayMsMax: 30_000,
  /** Decisions of one kind taken in one step; the rest follow in the next, which is due at once. */
  decisionsPerStep: 1_024,
  tasksPerPut: 10_000,
  keyLength: 1_024,
  /** Named rewards of one result. */
  rewardNames: 64,
  rewardNameLength: 128,
  flags: 16,
  /** One sentence of a cause, in characters: a stack trace belongs into an artifact. */
  causeLength: 4_096,
  causes: 8,
  /** Attempts kept with their evidence in a row; the newest stay. */
  attemptsKept: 16,
  /** Model calls open at once in one episode. */
  modelCalls: 64,
  /** Endings over which the share of `episode_error` is taken, and the share that pauses a run. */
  pauseWindow: 50,
  pauseErrors: 25,
  /** Platform failures in a row, without one sandbox that came up between them, that pause a run. */
  platformStreak: 20,
  /** Losses on one node within this time count once: a node that dies takes all its sandboxes. */
  sameNodeLossMs: 60_000,
} as const
