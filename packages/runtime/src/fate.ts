export const FATES = [
  /** `stop` was called. */
  'stopped',
  /** The sandbox's own memory limit was hit and the kernel killed it: evidence in `detail`. */
  'oom_limit',
  /** Killed for memory by the machine, its own limit not hit. */
  'oom_host',
  /** The agent ended it: its lifetime or its time without a daemon was over. */
  'expired',
  /** The agent broke the protocol. */
  'protocol',
  /** Anything else: killed from outside, crashed. */
  'lost',
] as const
export type FateKind = (typeof FATES)[number]

/** How a sandbox ended, and what it used. Recorded once, before its cgroup is removed. */
export interface Fate {
  readonly kind: FateKind
  /** One line of evidence for a person: counters, signals, last words of the runtime's log. */
  readonly detail: string
  readonly usage: Usage
}

/** From the host; zero where the machine doesn't account it. */
export interface Usage {
  readonly cpuMs: number
  /** Of processes and writable files in memory together, without what the kernel can drop; what the runtime itself needs comes on top. */
  readonly memoryBytes: number
  /** The kernel's cache of files included. */
  readonly memoryPeakBytes: number
  /** What writable layers take of the machine's disk. */
  readonly diskBytes: number
  /** To and from other hosts by an interface of its own. Absent without one. */
  readonly networkBytes?: number
}
