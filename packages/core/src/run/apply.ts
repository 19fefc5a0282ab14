import {
  applyAdmitted,
  applyAttemptEnded,
  applyBound,
  applyCancelled,
  applyExtended,
  applyReleaseRetried,
  applySetupDone,
  applyTornDown,
} from '../episode/apply-attempt.ts'
import {
  applyEnded,
  applyGradeRetried,
  applyLeased,
  applyModelEnded,
  applyModelStarted,
  applyNoted,
  applyReported,
  applyReturned,
  applyStopped,
  applyTaken,
} from '../episode/apply-lease.ts'
import { moveEpisode } from '../episode/move.ts'
import { applyGroupCut, applyGroupEnded, closeGroups, dropStale } from '../group/apply-group.ts'
import { applyHedged } from '../hedge/apply-hedge.ts'
import { attemptInProgress } from '../hedge/hedge.ts'
import { passTime } from '../report/passing.ts'
import { addReading } from '../report/reading.ts'
import {
  applyWorkerAttached,
  applyWorkerDetached,
  applyWorkerLagged,
  applyWorkerLost,
  applyWorkerRenewed,
} from '../worker/apply-worker.ts'
import { groupsRead } from './admission.ts'
import { applyRecovered, applyStatus } from './apply-status.ts'
import { applyTasksAdded } from './apply-tasks.ts'
import type { EventOf, RunEvent, Sink } from './event.ts'
import type { Episode, Run } from './run.ts'

/** Takes one recorded decision into the state. Decides nothing: the log is always right. */
export function apply(run: Run, event: RunEvent): void {
  applyWith(run, event, null)
}

/** The same, and says what has to be done once the event is durable. */
export function applyWith(run: Run, event: RunEvent, effects: Sink): void {
  // The time until a restart was nobody's.
  if (event.type !== 'recovered') passTime(run, event.atMs)
  run.nowMs = Math.max(run.nowMs, event.atMs)
  if ('episode' in event) {
    const apply = OF_EPISODE[event.type] as EpisodeApplier
    apply(run, episodeOf(run, event), event, effects)
  } else {
    const apply = OF_RUN[event.type] as RunApplier
    apply(run, event, effects)
  }
}

type EpisodeEvent = Extract<RunEvent, { episode: number }>
type PlainEvent = Exclude<RunEvent, EpisodeEvent>
type EpisodeApplier = (run: Run, episode: Episode, event: RunEvent, effects: Sink) => void
type RunApplier = (run: Run, event: RunEvent, effects: Sink) => void

const OF_EPISODE: {
  [T in EpisodeEvent['type']]: (
    run: Run,
    episode: Episode,
    event: EventOf<T>,
    effects: Sink,
  ) => void
} = {
  admitted: applyAdmitted,
  hedged: applyHedged,
  sandbox_bound: applyBound,
  setup_done: applySetupDone,
  leased: applyLeased,
  lease_taken: applyTaken,
  lease_returned: applyReturned,
  agent_stopped: applyStopped,
  agent_ended: applyEnded,
  model_started: applyModelStarted,
  model_ended: applyModelEnded,
  lease_noted: applyNoted,
  clock_extended: applyExtended,
  reported: applyReported,
  grade_retried: applyGradeRetried,
  attempt_ended: applyAttemptEnded,
  release_retried: applyReleaseRetried,
  torn_down: applyTornDown,
  requeued: (run, episode, event) => moveEpisode(run, episode, 'queued', event),
  episode_cancelled: applyCancelled,
}

const OF_RUN: {
  [T in PlainEvent['type']]: (run: Run, event: EventOf<T>, effects: Sink) => void
} = {
  tasks_added: applyTasksAdded,
  tasks_closed: (run, { atMs }) => {
    run.closed = true
    closeGroups(run, atMs)
  },
  worker_attached: applyWorkerAttached,
  worker_detached: applyWorkerDetached,
  worker_renewed: applyWorkerRenewed,
  worker_lagged: applyWorkerLagged,
  worker_lost: applyWorkerLost,
  group_cut: applyGroupCut,
  group_ended: applyGroupEnded,
  capacity_set: (run, { node, sandboxes, creating }) => {
    run.nodes.set(node, { sandboxes, creating })
  },
  policy_version_set: (run, { version }) => {
    run.policyVersion = version
    dropStale(run)
  },
  results_recorded: (run, { through }) => {
    for (const seq of run.unrecorded.keys()) {
      if (seq > through) break
      run.unrecorded.delete(seq)
    }
  },
  results_read: (run, { rows }) => {
    run.rowsRead = rows
    while ((run.unreadGroups[0] ?? Number.POSITIVE_INFINITY) <= rows) run.unreadGroups.shift()
  },
  groups_read: (run, { groups }) => {
    run.unreadGroups.splice(0, groups - groupsRead(run))
  },
  reading: (run, { read, ...more }) => addReading(run.totals.reading[read], more),
  status_changed: applyStatus,
  recovered: applyRecovered,
}

/** Of an episode that is hedged, the attempt that is spoken of. */
function episodeOf(run: Run, event: EpisodeEvent): Episode {
  const begins = event.type === 'admitted' || event.type === 'hedged' || !('attempt' in event)
  const episode = begins ? run.live.get(event.episode) : attemptInProgress(run, event)
  if (!episode) throw new Error(`the log speaks of episode ${event.episode}, which is not live`)
  return episode
}
