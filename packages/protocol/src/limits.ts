/** Every bound of the wire, in one place. Sizes in bytes, times in milliseconds. */
export const LIMITS = {
  /** JSON body of an HTTP request. */
  bodyBytes: 8 * 2 ** 20,
  /** A task or an episode's data that travels and is stored inline; larger ones are blobs. Both together fit a frame. */
  inlineBytes: 24 * 2 ** 10,
  /** A task or an episode's data, inline or as a blob. */
  payloadBytes: 64 * 2 ** 20,
  tasksPerRequest: 1_000,
  /** Episodes of one group, those that are started beyond its size included. */
  groupMembers: 256,
  /** Of one run. */
  episodes: 1_000_000,
  groupsPerPage: 100,
  rowsPerPage: 1_000,
  itemsPerPage: 1_000,
  /** A run that is over, and a result of a queue, stays at least so long. */
  retainMsMin: 60_000,
  nameLength: 200,
  keyLength: 512,
  tags: 32,
  tagLength: 128,
  argvItems: 4_096,
  argvBytes: 48 * 2 ** 10,
  envItems: 512,
  envBytes: 48 * 2 ** 10,
  /** Arguments and environment of one command together, the sandbox's own included. */
  startBytes: 60 * 2 ** 10,
  userLength: 128,
  /** Columns or rows of a terminal. */
  terminalCells: 4_096,
  /** What a buffered exec keeps of one channel: the first and the last so many bytes. */
  outputHeadBytes: 512 * 2 ** 10,
  outputTailBytes: 512 * 2 ** 10,
  concurrency: 100_000,
  /** A request that waits for news (`waitMs`). */
  waitMs: 30_000,
  /** The least that a sandbox can be asked to live, and a phase of an episode to take. */
  lifeMsMin: 1_000,
  /** A key that expires. */
  keyMsMax: 10 * 365 * 24 * 60 * 60_000,
  phaseMsMin: 100,
  /** A deadline of a command, a phase or a call: what a timer of Node.js can wait (24 days), less than that. */
  deadlineMsMax: 20 * 24 * 60 * 60_000,
  /** A lease without a heartbeat. */
  leaseMs: 60_000,
  /** A worker whose connection ended keeps its leases for so long. */
  reconnectMs: 10_000,
  /** Of one attempt; its log is one of them. */
  artifacts: 32,
  artifactBytes: 64 * 2 ** 20,
  artifactNameLength: 512,
  /** Patterns of a run, and what is collected by them of one episode: files, and their bytes together. */
  artifactPatterns: 16,
  collectedFiles: 64,
  collectedBytes: 256 * 2 ** 20,
  /** Lines of a row that say what was left out. */
  leftOut: 16,
  /** Snapshots of a run's sandboxes: by default, and at most. */
  keptDefault: 8,
  kept: 100,
  /** What is kept of the lines of an attempt's log. */
  logBytes: 256 * 2 ** 10,
  gradeFiles: 1_000,
  /** Paths that a grader in an image of its own is passed. */
  passedPaths: 64,
  programSteps: 64,
  /** Steps of one program that are graded in images of their own: each is a world of its sandbox. */
  stepImages: 8,
  pathBytes: 4_096,
  /** Hosts that a network policy names. */
  networkHosts: 256,
  /** What a sandbox's policy may ask for: connections at once and in a minute. */
  networkConnections: 128,
  networkConnectionsPerMinute: 6_000,
  /** Slower, a connection would look dead. */
  networkBytesPerSecondMin: 1_024,
  /** Secrets that one sandbox uses, hosts of each, and the length of a value. */
  secretUses: 32,
  secretHosts: 32,
  secretLength: 8_192,
  /** Secrets of a project. */
  secrets: 1_000,
  /** A wait until something listens on a port. */
  portWaitMs: 60 * 60_000,
  /** Steps of one image over its base. */
  buildSteps: 512,
  /** Text of one command of a build; an argument list has `argvBytes`. */
  stepTextBytes: 2 ** 20,
  /** What one command of a build may take. */
  stepMsMax: 24 * 60 * 60_000,
  /** Sources inside of sources: stages that copy from stages. */
  sourceDepth: 32,
  /** The longest that a start from saved memory waits for its command `onRestore`. */
  onRestoreMs: 600_000,
  /** Copies that one call of `fork` makes. */
  forks: 256,
  causeLength: 4_096,
  queueNameLength: 120,
  /** Of a task of a queue. */
  taskKeyLength: 256,
  taskRetries: 100,
  taskDelayMs: 30 * 24 * 3_600_000,
  /** Inputs that one container of a function works on at once, and containers of one queue. */
  functionConcurrency: 1_000,
  containers: 1_000,
} as const
