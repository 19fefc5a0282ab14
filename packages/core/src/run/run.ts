import type { Artifact, AttemptRow, Flag, HedgePhase, Outcome } from '@sandlot/protocol'
import type { Ending } from '../episode/ending.ts'
import type { EpisodePhase } from '../episode/phase.ts'
import type { Group } from '../group/group.ts'
import type { Heap } from '../order/heap.ts'
import type { KeyTable } from '../order/key-table.ts'
import type { Budget } from '../outcome/rules.ts'
import type { Totals } from '../report/totals.ts'
import type { UnrecordedGroup, UnrecordedRow } from './effect.ts'
import type { OwnTerms, Usage } from './input.ts'
import type { RunPolicy } from './policy.ts'
import type { RunStatus } from './status.ts'

/**
 * All that is known of a run. Its size follows the live episodes: those that ended are counters,
 * and 12 bytes for their key. `saveRun` gives it as JSON, `loadRun` takes it back; only `advance`
 * and `apply` change it.
 */
export interface Run {
  readonly policy: RunPolicy
  status: RunStatus
  /** Why it is paused or cancelled. */
  reason: string | null
  closed: boolean
  startedAtMs: number
  /** Of the last event: no input is earlier. */
  nowMs: number
  nextIndex: number
  nextToken: number
  nextSeq: number
  nextGroup: number
  policyVersion: number
  /** Rows that the furthest reader has taken; only told where the policy has `ahead`. */
  rowsRead: number
  /** For each group that ended and was not read, how many rows there were by then. Likewise. */
  unreadGroups: number[]
  /** Sandboxes whose files are kept, or about to be. */
  kept: number
  /** All the time in which there was no coordinator. */
  downMs: number
  /** For how long its own clock stood, and since when it stands again. */
  stoodMs: number
  stoodSinceMs: number | null
  readonly keys: KeyTable
  readonly live: Map<number, Episode>
  /** The second attempts of episodes that have two in progress, and those of ended ones that are still being released. */
  readonly hedges: Map<number, Episode>
  /** Those that are not over, where the run has groups. */
  readonly groups: Map<string, Group>
  /** Names of those that are, where tasks name them: they take no more members. */
  readonly groupsOver: KeyTable
  readonly workers: Map<string, Worker>
  readonly nodes: Map<string, NodeGrant>
  /** Rows and groups that the log of results has not confirmed, by `seq`. */
  readonly unrecorded: Map<number, UnrecordedRow | UnrecordedGroup>
  readonly failures: FailureWatch
  readonly totals: Totals
  readonly index: RunIndex
}

/** Derived from the rest, never saved: what makes each step O(log n). */
export interface RunIndex {
  /** Live episodes by phase. */
  readonly counts: Record<EpisodePhase, number>
  /** Episodes and hedges that hold a slot. */
  readonly slots: Set<Episode>
  readonly queued: Heap<Episode>
  readonly ready: Heap<Episode>
  readonly gradeReady: Heap<Episode>
  readonly backoff: Set<Episode>
  /** Those that may be hedged, by what they are in; the longest first. */
  readonly straggling: Readonly<Record<HedgePhase, Heap<Episode>>>
  /** The quantiles after which they are, as they were found last. */
  readonly hedgeAfter: Partial<
    Record<HedgePhase, { readonly atMs: number; readonly ms: number | null }>
  >
  readonly due: Heap<Episode>
  readonly workersDue: Heap<Worker>
  /** Attached workers with a free slot; the first is the next to be offered a lease. */
  readonly free: Set<Worker>
  /** Groups in which something changed that was not decided on yet. */
  readonly touched: Set<Group>
  /** Open groups whose members have all started, and that are not cut; the longest of them first. */
  readonly cuts: Heap<Group>
  /** The quantile after which groups are cut, as it was found last. */
  cutAfter: { readonly atMs: number; readonly ms: number | null } | null
}

export interface Episode {
  readonly index: number
  readonly key: string
  readonly taskJson: string | null
  readonly taskBlob: string | null
  /** null: it has what the run has. */
  readonly own: OwnTerms | null
  /** Name of its group; null: its key. */
  readonly group: string | null
  /** Which of its group it is, from 0. */
  readonly member: number
  readonly seed: number
  readonly expectedMs: number
  phase: EpisodePhase
  phaseAtMs: number
  dueMs: number | null
  /** Number of the current or last attempt; 0 before the first. */
  attempt: number
  /** Number of the last attempt that was begun: its own, or one beside it. */
  made: number
  /** It is the second attempt of an episode, and in `hedges`. */
  isHedge: boolean
  /** When it was first admitted, on the run's own clock. */
  startedMs: number | null
  workersLost: number
  readonly spent: Record<Budget, number>
  /** The attempts before the current one. */
  attempts: AttemptRow[]
  current: Attempt | null
  /** Its group, where the run has groups. Not saved, as the next. */
  peers: Group | null
  /** When the part that it is in began, by the time in which there was a coordinator. */
  sinceMs: number
  /** Places in `queued`, `ready` or `gradeReady`, and in `due`; -1 outside. */
  orderAt: number
  dueAt: number
  /** Place in `straggling`. */
  straggleAt: number
}

export interface Attempt {
  readonly admittedAtMs: number
  policyVersion: number
  sandbox: string | null
  node: string | null
  /** Of the one thing in progress, and the worker that has it; no worker where the daemon works. */
  token: number | null
  worker: string | null
  readonly clock: PhaseClock
  totalDueMs: number | null
  /** It was hedged, or is a hedge: neither is again. */
  hedged: boolean
  /** When its agent began, by the time in which there was a coordinator. */
  agentSinceMs: number | null
  /** `downMs` of the run and `lagMs` of the worker when the phase began. */
  downAtMs: number
  lagAtMs: number
  /** By how much the deadline of the phase was extended for what they took since. */
  extendedMs: number
  /** Since when it waits for a worker: `timeout.total` stands meanwhile. */
  waitAtMs: number
  /** Why it is being stopped. */
  stopCause: string | null
  gradeTries: number
  /** The phase in which its end was decided. */
  endedIn: EpisodePhase | null
  /** What its worker said last of how far it has come; absent: nothing. */
  note?: string
  /** Why the last call of its model was of no use; absent: it was, or its worker says that with its report. */
  modelFailed?: string
  report: AgentReport | null
  readonly flags: Flag[]
  ending: Ending | null
  releaseTries: number
  usage: Usage | null
  /** What is taken out of its sandbox before that is given back; and what came of it. */
  leaves: Leaves | null
  left: Left | null
}

export interface Leaves {
  /** Files by the run's patterns. */
  readonly artifacts: boolean
  /** A snapshot of all of them. */
  readonly snapshot: boolean
}

export interface Left {
  readonly artifacts: readonly Artifact[]
  readonly leftOut: readonly string[]
  readonly kept: string | null
}

/** Milliseconds per phase, as in the row. */
export interface PhaseClock {
  queuedMs: number
  createMs: number
  setupMs: number
  agentMs: number
  modelMs: number
  gradeMs: number
  teardownMs: number
}

/** What the agent's part left for its grade and its row. */
export interface AgentReport {
  /** What the attempt ends as once it is graded; null where nobody grades. */
  readonly outcome: 'graded' | 'agent_timeout' | 'limit' | null
  readonly error: string | null
  readonly dataJson: string | null
  readonly dataBlob: string | null
  readonly artifacts: readonly Artifact[]
}

export interface Worker {
  readonly name: string
  slots: number
  /** Those whose lease it has. Derived. */
  readonly leases: Set<Episode>
  /** null while it is attached. */
  detachedAtMs: number | null
  /** How long it has to come back, from there on. */
  graceMs: number
  renewedAtMs: number
  /** All the time its event loop or its connection took from its leases. */
  lagMs: number
  dueMs: number
  /** Place in `workersDue`. Not saved. */
  dueAt: number
}

export interface NodeGrant {
  readonly sandboxes: number
  readonly creating: number
}

/** What decides whether failures pause the run. */
export interface FailureWatch {
  /** The last endings, 1 for `episode_error`, 2 for `model_error`, else 0; a ring of `pauseWindow`. */
  readonly window: number[]
  windowAt: number
  errors: number
  streak: number
  lostNode: string | null
  lostAtMs: number
}

export type OutcomeCounts = Partial<Record<Outcome, number>>
