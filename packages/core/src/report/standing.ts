import type { AttemptProgress, EpisodeItem, EpisodeState, EpisodeView } from '@sandlot/protocol'
import { episodeId } from '../episode/episode-id.ts'
import type { EpisodePhase } from '../episode/phase.ts'
import { otherOf } from '../hedge/hedge.ts'
import { admissionBound } from '../run/admission.ts'
import { isAdmittedBefore } from '../run/index.ts'
import type { Episode, Run } from '../run/run.ts'

/** An episode that is not over, as one of a list. */
export function itemOf(run: Run, episode: Episode): EpisodeItem {
  return {
    episode: episodeId(run.policy.run, episode.index),
    key: episode.key,
    group: episode.group ?? episode.key,
    member: episode.member,
    index: episode.index,
    state: STATES[episode.phase],
    phase: episode.phase,
    sinceMs: episode.phaseAtMs,
    attempt: episode.attempt,
    sandbox: episode.current?.sandbox ?? null,
    outcome: null,
    reward: null,
    error: episode.attempts.at(-1)?.cause[0] ?? null,
  }
}

/** Where it stands, and what for. Takes a look at every queued episode where it is queued itself. */
export function standingOf(run: Run, episode: Episode): EpisodeView {
  const other = otherOf(run, episode)
  return {
    ...itemOf(run, episode),
    seed: episode.seed,
    waits: waitsFor(run, episode),
    ahead: episode.phase === 'queued' ? aheadOf(run, episode) : null,
    progress: [episode, ...(other ? [other] : [])].flatMap((each) => progressOf(run, each) ?? []),
    attempts: [...episode.attempts],
    row: null,
  }
}

const STATES: Readonly<Record<EpisodePhase, EpisodeState>> = {
  queued: 'queued',
  backoff: 'queued',
  creating: 'running',
  setup: 'running',
  ready: 'running',
  offered: 'running',
  agent: 'running',
  model: 'running',
  stopping: 'running',
  grade_ready: 'grading',
  grade_offered: 'grading',
  grading: 'grading',
  releasing: 'running',
  ended: 'done',
}

function progressOf(run: Run, episode: Episode): AttemptProgress | undefined {
  const { current, attempt, phase } = episode
  if (current === null) return undefined
  const { sandbox, node, policyVersion, clock } = current
  const worker = current.worker === null ? undefined : run.workers.get(current.worker)
  return {
    ...{ attempt, phase, sandbox, node, policyVersion },
    sinceMs: episode.phaseAtMs,
    dueMs: episode.dueMs,
    phases: { ...clock },
    worker: worker
      ? { name: worker.name, heardMs: worker.renewedAtMs, goneMs: worker.detachedAtMs }
      : null,
  }
}

/** For a person; null: for nothing but itself. */
export function waitsFor(run: Run, episode: Episode): string | null {
  const worker = run.workers.get(episode.current?.worker ?? '')
  switch (episode.phase) {
    case 'queued':
      return queuedFor(run)
    case 'backoff':
      return 'a moment before it is tried again'
    case 'creating':
      return 'its sandbox, which waits for room on the machine or is being created'
    case 'ready':
    case 'grade_ready':
      return workerFor(run)
    case 'offered':
    case 'grade_offered':
      return `the worker ${worker?.name} to begin with it`
    case 'model':
      return 'the model to answer'
    case 'stopping':
      return episode.current?.stopCause === null
        ? 'what its agent left to be taken up'
        : 'its agent to end, whose time is used up'
    case 'releasing':
      return 'its sandbox to be given back'
    default:
      return worker && worker.detachedAtMs !== null
        ? `the worker ${worker.name}, whose connection is gone, to come back`
        : null
  }
}

function queuedFor(run: Run): string {
  const { policy, status, reason, index } = run
  if (status === 'paused') return `the run to be resumed: ${reason ?? 'it is paused'}`
  if (status === 'cancelling') return 'its cancellation'
  if (status === 'waiting') return 'a worker: the run has none'
  switch (admissionBound(run)) {
    case 'consumer':
      return `its run's results to be read: ${policy.ahead} or more are unread`
    case 'concurrency':
      return `a slot: all ${policy.concurrency} of its run are taken`
    case 'capacity':
      return `room: the machine has none for more than the ${index.slots.size} sandboxes of its run`
    case 'create-rate':
      return `sandboxes that are being created: ${index.counts.creating} at once are as many as the machine can`
    case null:
      return 'its admission, which is about to come'
  }
}

function workerFor(run: Run): string {
  const attached = [...run.workers.values()].filter((worker) => worker.detachedAtMs === null)
  const slots = attached.reduce((sum, worker) => sum + worker.slots, 0)
  if (slots === 0) return 'a worker: the run has none'
  return `a free worker: all ${slots} slots of ${attached.length} are taken`
}

function aheadOf(run: Run, episode: Episode): number {
  let ahead = 0
  for (const other of run.live.values()) {
    if (other.phase === 'queued' && isAdmittedBefore(other, episode)) ahead++
  }
  return ahead
}
