/** Every bound of the runtime on a machine, except those towards a guest (`guest/limits.ts`). */
export const RUNTIME_LIMITS = {
  /** From the request for a sandbox to its agent's hello. */
  startMs: 20_000,
  /** From a blank to its open world. */
  checkoutMs: 15_000,
  /** Until a sandbox's memory is on disk, besides what its size takes. */
  checkpointMs: 100_000,
  /** From a checkpoint to its agent's answer, besides what its size takes. */
  restoreMs: 60_000,
  /** The slowest disk that memory is waited for: 20 MB/s. */
  memoryBytesPerMs: 20_000,
  /** Everything in a restored sandbox stands still, or goes on. */
  holdMs: 5_000,
  /** Besides what a sandbox uses, for the runtime's own state in a checkpoint. */
  checkpointSpareBytes: 16 * 2 ** 20,
  /** Writable files on the disk that are saved with the memory: the sandbox stands still while they are copied. */
  checkpointDiskBytesMax: 8 * 2 ** 30,
  /** Facts of a checkpoint. */
  checkpointFactsBytesMax: 2 ** 20,
  /** What the runtime says of itself: version, features of the processor. */
  runtimeFactsMs: 10_000,
  /** All processes of an ended sandbox are gone. */
  killMs: 10_000,
  /** The kernel lets go of an empty cgroup. */
  removeMs: 5_000,
  /** A world is empty before it is graded. */
  endWorldMs: 15_000,
  /** A found sandbox's agent answers: one that is late is lost to its owner, so it has as long as a checkout. */
  adoptMs: 15_000,
  /** Found sandboxes looked at side by side. */
  adoptAtOnce: 32,
  /** So long nobody knows a sandbox that lives, until it is ended: far longer than a start or a restore takes. */
  unwantedMs: 60 * 60_000,
  /** What is of nobody is removed by one look of the reconciling. */
  straysAtOnce: 64,
  /** Sandboxes that are looked at before others get their turn. */
  looksAtOnce: 64,
  /** A daemon waits so long for the lock of its state directory. */
  lockMs: 2_000,
  /** Sandboxes ended side by side. */
  stopsAtOnce: 16,
  /** One answer of the host helper, beyond the deadline that it was given. */
  helperGraceMs: 5_000,
  /** The agent's image: the agent and its mount points. */
  agentImageBytesMax: 64 * 2 ** 20,
  /** The image of what tells one sandbox from its copies. */
  identityImageBytesMax: 64 * 2 ** 10,
  /** Layers of one sandbox: as many as an agent takes. */
  layersMax: 128,
  /** Of the pipes to and from an agent; less where the machine allows less. */
  pipeBytes: 2 ** 20,
  /** So old a name of a sandbox's file on the disk is nobody's: a start takes less. */
  diskNamesMs: 10 * 60_000,
  /** A state file of a sandbox. */
  stateBytesMax: 2 ** 20,
  /** Longest path of a control socket that Unix allows. */
  socketPathBytesMax: 107,
  /** Last words of a runtime's log kept as evidence. */
  evidenceChars: 600,
  /** A blank without a daemon ends itself: what the agent does before it is configured. */
  blankDetachedMs: 60_000,
  /** Memory of a blank's cgroup: the runtime's own and the prepared world. */
  blankMemoryBytes: 128 * 2 ** 20,
  /** Host processes for each guest process; over the host's limit the sandbox dies, so there is room. */
  hostPidsFactor: 10,
  hostPidsMin: 1_024,
  /** One file of the Container Device Interface, and how often its text may stand for itself elsewhere. */
  cdiBytesMax: 4 * 2 ** 20,
  cdiAliasesMax: 1_000,
} as const
