/** Every bound between a node and a guest. Sizes in bytes, times in milliseconds. */
export const GUEST_LIMITS = {
  /** A request without content. */
  requestMs: 30_000,
  /** Until a command says that it runs. */
  startMs: 60_000,
  /** A request with content: files, tars, listings. */
  transferMs: 15 * 60_000,
  /** Until a connection to a port inside is made. */
  connectMs: 10_000,
  /** What may be under way from a port inside, on each connection. The other way the agent takes the usual credit. */
  portWindowBytes: 2 ** 19,
  /** From opening the pipes to the agent's hello. */
  handshakeMs: 30_000,
  /** On top of the deadline that the agent keeps for a command, before the host gives up on its result. */
  execGraceMs: 30_000,
  /** On top of the time a request gives the agent, before the host gives up on the answer. */
  answerGraceMs: 5_000,
  /** Nothing came for so long: a ping is sent. Idle sandboxes are woken by it, so it is rare. */
  quietMs: 30_000,
  /** Nothing came for so long: the guest is lost. */
  silentMs: 120_000,
  /** Requests under way towards one guest; the agent takes no more. */
  streams: 1_024,
  /** Control frames that wait for the pipe. */
  controlBytes: 4 * 2 ** 20,
  /** A path or a name. */
  pathBytes: 4_096,
  /** Any count or size a guest may claim. */
  countMax: Number.MAX_SAFE_INTEGER,
  /** Worlds a guest may list. */
  worlds: 64,
  /** Execs a guest may list: those that run, and those that are kept. */
  execs: 1_280,
  /** A name that a guest says: a world, an exec, a sandbox, a version. */
  nameLength: 256,
  /** Processes a guest may list. */
  processes: 512,
  /** Listeners that a guest may tell of. */
  listeners: 1_024,
  /** Command line of a listed process or exec. */
  commandBytes: 4_096,
  /** Head or tail of a buffered exec, per channel. */
  keptBytes: 8 * 2 ** 20,
  /** Events `offset` of one exec stream. */
  offsetEvents: 16,
  /** News nobody has read yet. */
  newsQueue: 1_024,
  /** One entry of a directory listing. */
  entryBytes: 8_192,
} as const
