import { LIMITS } from '@sandlot/protocol'

/** Every bound of core that the wire does not already set, with the reason for its size. */
export const CORE_LIMITS = {
  /** A worker that has not been heard for this long has died, and its leases with it. */
  leaseMs: LIMITS.leaseMs,
  /**
   * A worker whose connection ended has so long to come back: a killed process ends its connection at once and never does, a
   * client that lost it tries several times within.
   */
  reconnectMs: LIMITS.reconnectMs,
  /** A heartbeat is recorded only when the last recorded one is this old: a third of the lease. */
  renewEveryMs: LIMITS.leaseMs / 3,
  /** Event-loop lag below this is noise, and not worth a record. */
  lagRecordedMs: 100,
  /** Until a program's command begins: what it needs is brought meanwhile. */
  beginMs: 180_000,
  /** A command whose time is used up has so long to end, so that what it said is kept; then it is ended without that. */
  stopMs: 10_000,
  /** What a program left that ended in its time is taken up within so long, although its time goes by meanwhile. */
  takeUpMs: 120_000,
  /** Least extension of a deadline that is met while its worker's connection is gone. */
  extensionMsMin: 1_000,
  /** A release that was not confirmed is asked for again after this long … */
  teardownMs: 30_000,
  /** … so often in all; after that the node ends the sandbox by itself, for want of an owner. */
  releaseTries: 3,
  /** What is taken out of a sandbox before it is given back has so long on top of the first. */
  leaveMs: 120_000,
  /** An episode that held this many workers that died is taken to be what kills them. */
  workersLost: 3,
  /** First wait before a retry for infrastructure or model; doubled each time, up to the second. */
  retryDelayMs: 500,
  retryDelayMsMax: 30_000,
  /** Attempts that the policy `retry` adds, where the outcome has no budget of its own. */
  policyRetries: 1,
  /** A quantile of what was seen so far is told from so many on that have ended, and found anew at most so often. */
  quantileSamplesMin: 20,
  quantileEveryMs: 1_000,
  /** Decisions of one kind in one step; the rest follow in the next, which is due at once. */
  decisionsPerStep: 1_024,
  tasksPerPut: 10_000,
  /** Named rewards of one result, and the length of a name. */
  rewardNames: 64,
  rewardNameLength: 128,
  /** Sentences of one cause. */
  causes: 16,
  /** Different causes of failures that a run counts, and how many of them its report tells, in so many characters each. */
  causesKept: 64,
  causesReported: 20,
  causeShown: 300,
  /** Attempts that a report names because they have gone on for the longest. */
  longestReported: 3,
  artifacts: LIMITS.artifacts,
  /** Attempts kept with their evidence in a row; the newest stay. */
  attemptsKept: 16,
  /** Share of a phase's time from which a worker that stopped by itself is said to have used it up. */
  timeoutShare: 0.9,
  /** Endings over which the share of `episode_error` and `model_error` is taken, and how many pause the run. */
  pauseWindow: 50,
  pauseErrors: 25,
  /** Platform failures without a sandbox that came up between them that pause the run. */
  platformStreak: 20,
  /** Losses on one node within this time count once: a node that dies takes all its sandboxes. */
  sameNodeLossMs: 60_000,
} as const
