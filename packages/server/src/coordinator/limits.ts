import { APPEND_BYTES_MAX } from '@sandlot/engine'

/** Every bound of the coordinator that is not one of the wire. Sizes in bytes, times in milliseconds. */
export const COORDINATOR_LIMITS = {
  /** Runs that are deleted by one look for those that are too old. */
  oldRunsAtOnce: 32,
  /** A run's specification as it is stored: it shares a value of the key-value store with the run's last view. */
  specificationBytes: 192 * 2 ** 10,
  /** What a task has of its own, as it is stored: it shares a record with other tasks. */
  ownTermsBytes: 128 * 2 ** 10,
  /** What tasks start from, so many in one append. */
  ownStartsPerAppend: 256,
  /** Runs that are not finished, of all projects. */
  runsLive: 1_000,
  /** A task up to this size is kept in memory with its episode; a larger one is read from disk when it is leased. */
  taskInlineBytes: 256,
  /** Keys, groups and references of the tasks that become one event. */
  tasksEventCharacters: 32 * 2 ** 10,
  /** … and the episodes that they become. */
  tasksEventEpisodes: 4_096,
  /** Causes of one report, in characters all together. */
  causeCharacters: 16 * 2 ** 10,
  /** Task content per record of a run's log of tasks: what one lease reads at most. */
  taskRecordBytes: 64 * 2 ** 10,
  /** Records of tasks that are kept decoded, for all runs. */
  taskCacheBytes: 8 * 2 ** 20,

  /** Inputs that are decided on in one turn before the event loop gets its turn again. */
  inputsPerTurn: 512,
  /** Inputs that wait for one run; beyond it a worker's events are left in its connection. */
  inputsWaiting: 262_144,
  /** One record of events, in characters of JSON; a single event may be longer. */
  eventRecordCharacters: 48 * 2 ** 10,
  eventAppendBytes: APPEND_BYTES_MAX,
  /** Events that are decided and not yet durable; beyond it a run decides nothing more until the disk has caught up. */
  eventBytesInFlight: 4 * 2 ** 20,
  /** A checkpoint is written after this much of events, and not before four times its own size. */
  checkpointBytes: 8 * 2 ** 20,
  checkpointRatio: 4,
  /** What a checkpoint takes for a key, a waiting and an admitted episode: enough to foretell its size. */
  checkpointKeyBytes: 16,
  checkpointWaitingBytes: 160,
  checkpointAdmittedBytes: 700,

  /** Rows and groups that wait to be durable; beyond it a run decides nothing more until the disk has caught up. */
  resultsInFlight: 4_096,
  resultAppendBytes: APPEND_BYTES_MAX,
  /** One row; beyond it the causes are cut to so many characters a sentence. */
  resultBytes: 192 * 2 ** 10,
  causeCharactersCut: 200,
  resultPageBytes: 4 * 2 ** 20,
  /** Rows that are looked through at once for one of a key, and pages of rows that one page of episodes may take. */
  rowsLookedAt: 500,
  episodePagesRead: 8,
  /** Cursors of one run of which it is remembered how many rows they stand for. */
  readMarks: 256,
  /** Readers that wait for one run's next result. */
  resultReaders: 1_000,

  /** How long an append that failed for now (full disk, full backlog) waits before it is tried again. */
  appendRetryMs: 250,
  /** How long the node is asked for a release before core is told that it is not confirmed. */
  releaseMs: 25_000,
  /** How long collecting an attempt's files may take, and keeping all of them: together less than core waits for. */
  collectMs: 45_000,
  keepMs: 60_000,
  /** How long a daemon that stops waits until it is recorded that attempts are given up. */
  giveUpMs: 5_000,
  /** How long opening the grade world and bringing the files may take before the platform has failed. */
  gradeOpenMs: 60_000,
  /** Output of a set-up or grade command that is kept for its error text. */
  commandTailBytes: 2_048,
  /** What is kept of each channel of a program, and of its grade command. */
  outputHeadBytes: 64 * 2 ** 10,
  outputTailBytes: 192 * 2 ** 10,
  /** A file that holds a verdict. */
  verdictBytes: 64 * 2 ** 10,
  /** How long bringing a program's files may take before the platform has failed. */
  bringMs: 60_000,
  /** How often the daemon, as a worker of its own, says that it is there. */
  renewMs: 15_000,
  /** How long it waits before it comes back as a worker where it was given up. */
  attachAgainMs: 1_000,
  /** Attempts that a container of a function works on at once, and containers of one run, where nothing is said. */
  attemptsPerContainer: 16,
  containers: 64,
  /** A handler whose time is over has so long to return; then its container takes no more. */
  handlerStopMs: 10_000,
  handlerLookMs: 1_000,
  /** What a function's attempt gives back: its report with its data, and names of its artifacts. */
  attemptEndBytes: 2 * 2 ** 20,
  /** A token of a lease's sandbox is good for so long at most, should the lease not end before. */
  leaseTokenMs: 24 * 3_600_000,
  /** A command whose end was ordered is waited for so long: less than core waits to hear of it. */
  endMs: 5_000,
  /** A command that is to end and has not begun is looked for so often. */
  stopEveryMs: 100,
  /** How long the node's feed of endings rests after it broke. */
  feedRetryMs: 1_000,
  /** How often runs and node are compared. */
  compareEveryMs: 60_000,
  /** First wait before a run that broke off is read back again; doubled each time up to the second. */
  reopenMs: 1_000,
  reopenMsMax: 30_000,
  /** How often a node's capacity is asked for. */
  capacityEveryMs: 10_000,
} as const
