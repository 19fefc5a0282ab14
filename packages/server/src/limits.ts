/** Every bound of the daemon itself; those of the wire are the protocol's. Sizes in bytes, times in milliseconds. */
export const SERVER_LIMITS = {
  /** What a killed daemon may lose of the metering of a sandbox, or of what waits in the pool. */
  meterEveryMs: 5_000,
  idleMeteredMs: 60_000,
  /** How long it is told what sandboxes took, where nothing is said. */
  usageMs: 400 * 86_400_000,
  /** Stretches after which the sums of a day are written down: more than there are endings that may be told again. */
  usageUncounted: 10_000,
  /** How long a stretch waits for others, to be recorded with them. */
  usageWaitsMs: 200,
  /** Connections at once, HTTP and WebSocket together. */
  connections: 16_384,
  /** How often it is looked for a renewed certificate, and how long a handshake may take. */
  certificateEveryMs: 10_000,
  handshakeMs: 15_000,
  /** Connections beyond them that are told so at once, and how long one has to read it. */
  refusedAtOnce: 256,
  refusedMs: 2_000,
  /** Requests with a bad key from one address: so many a second, after so many at once. */
  refusalsPerSecond: 10,
  refusalsBurst: 100,
  /** Keys and addresses whose requests are counted. */
  rateNames: 20_000,
  /** How often it is looked for connections whose request doesn't come. */
  connectionsEveryMs: 5_000,
  /** A streamed body may come slowly for so long, then it has come at so many bytes a second at the least. */
  trickleMs: 5 * 60_000,
  trickleBytesPerSecond: 64,
  /** A whole answer above this size is given up when nobody takes it. */
  watchedAnswerBytes: 64 * 2 ** 10,
  /** Request line and headers. */
  headerBytes: 16 * 2 ** 10,
  /** From the first byte of a request to the last of its headers. */
  headersMs: 15_000,
  /** A JSON body, from first to last byte. */
  bodyMs: 30_000,
  /** A streamed body of which nothing comes, or an answer of which nothing is taken. */
  stallMs: 120_000,
  /** An idle connection is kept for the next request; longer than a client keeps it. */
  keepAliveMs: 65_000,
  /** A connection without a word for so long is asked by the kernel whether its other end is there. */
  probeMs: 30_000,
  /** How often the daemon looks whether it can still be found on this machine. */
  announceEveryMs: 1_000,
  idempotencyKeyLength: 200,
  /** How long the first answer to an idempotency key is known. */
  idempotencyMs: 15 * 60_000,
  /** Answers to one-off commands, kept in memory. */
  execAnswers: 10_000,
  execAnswerBytes: 32 * 2 ** 20,
  /** An answer longer than this is not kept for its idempotency key. */
  keptAnswerBytes: 128 * 2 ** 10,
  /** How long it is known who did what. */
  auditDays: 90,
  /** Entries that wait to be written, how long they do, and how many are written at once. */
  auditWaiting: 20_000,
  auditEveryMs: 1_000,
  auditBatch: 256,
  /** Of an id or name in an entry. */
  auditTargetLength: 200,
  /** Entries that one request looks through. */
  auditScanned: 20_000,
  /** Keys of the API. */
  keys: 1_000,
  /** What projects hold, remembered so that it needs no look into the store. */
  holdingsKnown: 50_000,
  /** How long a key that expired is still listed. */
  expiredKeyMs: 30 * 24 * 60 * 60_000,
  /** A shorter line in a file of a secret is only a part of one. */
  secretLengthMin: 32,
  /** A signed token with all that it says; it must fit a URL. */
  signedBytes: 8 * 2 ** 10,
  /** Of a signed URL of a file, where nothing is said. */
  fileUrlMs: 10 * 60_000,
  /** The longest life of what is signed. */
  signedFileMs: 7 * 24 * 60 * 60_000,
  signedPortMs: 7 * 24 * 60 * 60_000,
  signedSandboxMs: 24 * 60 * 60_000,
  /** How often it is looked which connections have lost their right. */
  rightsEveryMs: 1_000,

  /** Open files of one process in a sandbox. */
  nofile: 16_384,
  /** How long a sandbox without a daemon lives at the most, where its owner said nothing. */
  detachedMs: 600_000,
  /** Entries of directories that are looked at for the artifacts of one episode, and how deep below the root. */
  collectEntries: 20_000,
  collectDepth: 32,
  /** Files of sandboxes that a run kept are there for so long, unless the run is deleted before. */
  keptMs: 7 * 24 * 60 * 60_000,
  /** How often it is looked for those that are older. */
  keptEveryMs: 60 * 60_000,
  /** A checkout or a cold start. */
  createMs: 60_000,
  /** Uses of a snapshot within this time are written down once. */
  snapshotUseMs: 60_000,
  /** Saving the memory of a sandbox, or restoring it, besides what its size takes. */
  memoryMs: 120_000,
  /** The slowest disk that memory is waited for: 10 MB/s. The runtime gives up before. */
  memoryBytesPerMs: 10_000,
  /** The command of a start from saved memory, where it has no time of its own. */
  onRestoreMs: 60_000,
  /** A resume that waits for room. */
  resumeWaitMs: 10_000,
  /** Ending a sandbox. */
  stopMs: 30_000,
  stopTries: 3,
  /** A last look at what a sandbox used. */
  lastStatsMs: 1_000,
  /** Ending a world and opening the grader's. */
  gradeWorldMs: 30_000,
  /**
   * A guest that is out of reach: how long to wait to hear how its sandbox ended. The kernel takes its time to free gigabytes, and until
   * then it isn't known that their sandbox broke its own limit.
   */
  fateMs: 30_000,
  /** Endings that are remembered, and for how long. */
  endings: 10_000,
  endingMs: 60 * 60_000,
  /** Lines in the log about the connections of one sandbox, in a minute and in all; each connection is counted. */
  connectionLinesAMinute: 16,
  connectionLines: 256,
  /**
   * The log of one sandbox's connections that its owner reads: lines that are kept, those that are written down, what may come at once
   * and in a second, how long the text of one is, and how long that of a sandbox that lives is kept after its last line.
   */
  journalLines: 1_024,
  journalSavedLines: 128,
  journalBurst: 256,
  journalLinesASecond: 32,
  journalTargetLength: 262,
  journalDetailLength: 512,
  journalMs: 30 * 86_400_000,
  /** How often it is written down what sandboxes sent and got: a daemon that is killed forgets no more. */
  networkBytesEveryMs: 30_000,
  /** How often it is looked whether the machine has what the node believes, and nothing else. */
  reconcileEveryMs: 10_000,
  /** Free memory that nobody is promised: a share of the machine's, no more than this. */
  memoryFreeBytes: 2 ** 30,
  memoryFreeShare: 0.05,
  /** How often the memory of the machine and of all sandboxes is looked at, and how much longer than a look the pause is at least. */
  memoryEveryMs: 1_000,
  memoryLookShare: 20,
  /** How often sandboxes past their time are looked for. */
  reapEveryMs: 1_000,
  /** Sandboxes ended by one look. */
  reapsAtOnce: 64,
  /** Endings that nobody has read yet, for one reader. */
  newsWaiting: 10_000,
  /** How often contents that nothing keeps are removed, and how long after they were put or asked for last. */
  blobsEveryMs: 3_600_000,
  blobGraceMs: 86_400_000,
  /** The list of all files of a backup. */
  backupListBytes: 512 * 2 ** 20,
  /** How often it is looked for runs that are over for longer than they are kept. */
  retainEveryMs: 10 * 60_000,
  /** Layers that are mounted ahead; an image of more is mounted when it is asked for. */
  layersAhead: 16,
  /** So many sandboxes in a row of one sort: what waits for another sort is given up, one at a time. */
  takesAlike: 4,
  /** Takes from the pool within this time are one burst: what waits is to do for all of it. */
  burstMs: 2_000,
  /** How long a demand that was announced counts. */
  expectMs: 60_000,
  /** How often the pool looks whether demand has passed. */
  poolLookMs: 1_000,
  /** What a start takes of one processor: more than the least are started ahead only as fast as processors have nothing else to do. */
  startProcessorMs: 150,
  /** What waits in the pool takes no more of what the daemon gives in all. */
  poolMemoryShare: 0.25,
  /** What a blank takes of the machine's memory, and a copy of saved memory beside that memory. */
  blankBytes: 12 * 2 ** 20,
  copyBytes: 19 * 2 ** 20,
  /** How long the pool leaves the processors to whoever took a blank, before it starts the next. */
  refillDelayMs: 50,
  /** First wait after a failed refill of the pool; doubled each time up to the second. */
  refillWaitMs: 500,
  refillWaitMsMax: 30_000,
  /** Of the disk that holds files of sandboxes: never promised to them, the larger of the two. */
  diskReserveBytes: 2 * 2 ** 30,
  diskReserveShare: 0.05,
  /** Nothing new is admitted while the disk of the data directory has less free space: the smaller of the two. */
  diskFreeBytes: 1 * 2 ** 30,
  diskFreeShare: 0.02,
  /** How often it is looked how much there is, and after how many bytes of a body that is kept there. */
  diskEveryMs: 1_000,
  diskEveryBytes: 16 * 2 ** 20,

  /** An acquire that waits for room. */
  roomWaits: 20_000,

  /** A step of a build waits for room among the sandboxes. */
  buildRoomMs: 10 * 60_000,
  /** What a step may use: memory up to here, or half of what the daemon gives in all. */
  buildMemoryBytes: 8 * 2 ** 30,
  buildPids: 2_048,

  /** How long a template may take until it is ready, where nothing is said, and how often it is asked. */
  readyMs: 60_000,
  readyEveryMs: 100,

  /** Connections to ports of one sandbox at once; its agent makes no more than 256. */
  portConnections: 200,
  /** A list of what listens, for the error that says so. */
  portLookMs: 1_000,
  /** Nothing moved on a connection to a port: a request of HTTP; a WebSocket, or a stream of any other protocol. */
  portRequestIdleMs: 600_000,
  portStreamIdleMs: 60 * 60_000,
  /** How long a connection that answered is kept for the next request: servers drop theirs after five seconds. */
  portKeptMs: 4_000,
  /** Of one port. */
  portsKept: 16,

  blobBytes: 64 * 2 ** 30,
  /** Lines of a build that its reader has not taken yet. */
  buildLinesWaiting: 10_000,

  /** Streams that one WebSocket has under way. */
  streams: 16_384,
  /** Bytes that wait in the socket of a client that doesn't read, before its streams are held up. */
  socketBytes: 1 * 2 ** 20,
  /** One message of a WebSocket. */
  messageBytes: 4 * 2 ** 20,
  /** A silent connection is asked for a sign of life, and given up when none comes. */
  pingEveryMs: 20_000,
  pingsMissed: 3,
} as const
