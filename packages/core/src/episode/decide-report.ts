import type { WorkerReport } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { addressOf, type Decision, emit, fencedEpisode, ignore } from '../run/decision.ts'
import type { ReportBody } from '../run/event.ts'
import type { Fenced, InputOf } from '../run/input.ts'
import type { Episode } from '../run/run.ts'
import { timeoutsOf } from '../run/timeouts-of.ts'
import { dropLease } from '../worker/drop-lease.ts'
import { endAttempt } from './decide-end.ts'
import { gradeFailed, gradeGiven } from './decide-grade.ts'
import { finishAgent, finishStopped, loseStopped } from './finish-agent.ts'
import type { EpisodePhase } from './phase.ts'
import { checkReward, type Reward } from './reward.ts'
import { boundedCause, settle } from './settle.ts'

export function decideTaken(decision: Decision, input: Fenced): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  if (episode.phase === 'offered' || episode.phase === 'grade_offered') {
    emit(decision, { type: 'lease_taken', ...addressOf(episode) })
  } else {
    ignore(decision, 'the lease was taken already')
  }
}

export function decideModelStarted(decision: Decision, input: Fenced): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  // Whoever calls a model has taken the lease, even if the word of that was lost.
  if (episode.phase === 'offered') emit(decision, { type: 'lease_taken', ...addressOf(episode) })
  if (episode.phase === 'agent' || episode.phase === 'model') {
    emit(decision, { type: 'model_started', ...addressOf(episode) })
  } else {
    ignore(decision, 'the agent does not run')
  }
}

export function decideModelEnded(decision: Decision, input: InputOf<'model_ended'>): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  if (episode.phase !== 'model') {
    ignore(decision, 'no model call is open')
    return
  }
  const [failed] = input.failed === undefined ? [] : boundedCause([input.failed])
  const why = failed === undefined ? {} : { failed }
  emit(decision, { type: 'model_ended', ...addressOf(episode), ...why })
}

export function decideEnded(decision: Decision, input: InputOf<'agent_ended'>): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  if (episode.phase !== 'stopping' || episode.current?.stopCause === null) {
    ignore(decision, 'it is not being stopped')
  } else if (isInTime(decision, episode, input.agentMs)) {
    emit(decision, { type: 'agent_ended', ...addressOf(episode) })
  } else ignore(decision, 'its time was over before')
}

export function decideNoted(decision: Decision, input: InputOf<'lease_noted'>): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  const { note } = input
  if (NOTED_IN.has(episode.phase))
    emit(decision, { type: 'lease_noted', ...addressOf(episode), note })
  else ignore(decision, 'the agent does not run')
}

const NOTED_IN: ReadonlySet<EpisodePhase> = new Set(['agent', 'model', 'stopping'] as const)

export function decideReported(decision: Decision, input: InputOf<'reported'>): void {
  const episode = fencedEpisode(decision, input)
  if (!episode) return
  if (episode.phase === 'offered' || episode.phase === 'grade_offered') {
    emit(decision, { type: 'lease_taken', ...addressOf(episode) })
  }
  if (episode.phase === 'grading') decideGradeReport(decision, episode, input)
  else if (episode.phase === 'agent' || episode.phase === 'model') {
    decideAgentReport(decision, episode, input)
  } else if (episode.phase === 'stopping') {
    decideStoppedReport(decision, episode, input)
  } else ignore(decision, 'no worker runs in this phase')
}

function decideStoppedReport(
  decision: Decision,
  episode: Episode,
  input: InputOf<'reported'>,
): void {
  const { report, agentMs, fault } = input
  const inTime = report.kind !== 'aborted' && isInTime(decision, episode, agentMs)
  if (inTime || episode.current?.stopCause === null) decideAgentReport(decision, episode, input)
  else if (fault === 'platform') loseStopped(decision, episode, 'it could not be ended')
  else finishStopped(decision, episode, { body: withData(report, bodyOf(decision, input)) })
}

/** Its time went by after its end, until the worker could tell of that. */
function isInTime({ run }: Decision, episode: Episode, agentMs: number | undefined): boolean {
  if (!isDuration(agentMs)) return false
  const modelMs = episode.current?.clock.modelMs ?? 0
  return agentMs - modelMs < timeoutsOf(run, episode).agent
}

function decideAgentReport(decision: Decision, episode: Episode, input: InputOf<'reported'>): void {
  const { report } = input
  const body = bodyOf(decision, input)
  if (report.kind === 'returned') {
    agentReturned(decision, episode, report, body)
  } else if (report.kind === 'model_failed') {
    fail(decision, episode, 'model_error', report.cause, body)
  } else if (report.kind === 'aborted') {
    agentStopped(decision, episode, body)
  } else {
    fail(decision, episode, 'episode_error', report.cause, body)
  }
}

function agentReturned(
  decision: Decision,
  episode: Episode,
  report: Extract<WorkerReport, { kind: 'returned' }>,
  reported: ReportBody,
): void {
  const { run } = decision
  const checked = checkReward(report)
  const body = withData(report, reported)
  const graded = run.policy.grade !== 'none'
  const wrong =
    typeof checked === 'string'
      ? checked
      : checked !== null && graded
        ? 'the episode returned a reward, but the run has a grader: only that one gives rewards'
        : checked === null && !graded && report.limit === undefined
          ? 'the episode returned no reward, and the run has no grader'
          : null
  if (wrong !== null) {
    fail(decision, episode, 'episode_error', [wrong], body)
    return
  }
  const limit = report.limit === undefined ? null : `the budget '${report.limit}' was used up`
  finishAgent(decision, episode, {
    outcome: limit === null ? 'graded' : 'limit',
    body: limit === null ? body : { ...body, error: limit },
    cause: limit === null ? [] : [limit],
    ...(checked === null ? {} : { verdict: checked as Reward }),
  })
}

/**
 * A worker that stopped by itself near its deadline has met it; otherwise it gave the lease up. Where the run itself stops an agent whose
 * time is used up, it can only have given up.
 */
function agentStopped(decision: Decision, episode: Episode, body: ReportBody): void {
  const { run, nowMs } = decision
  const usedMs = body.agentMs ?? nowMs - episode.phaseAtMs
  const totalDueMs = episode.current?.totalDueMs ?? Number.POSITIVE_INFINITY
  const share = CORE_LIMITS.timeoutShare
  const isMet = usedMs >= timeoutsOf(run, episode).agent * share || nowMs >= totalDueMs
  if (isMet && run.policy.stopMs === 0) {
    const cause = 'the agent used up its time'
    finishAgent(decision, episode, {
      outcome: 'agent_timeout',
      body: { ...body, error: cause },
      cause: [cause],
    })
    return
  }
  dropLease(decision, episode, { cause: 'the worker gave the attempt up', counts: true })
}

function fail(
  decision: Decision,
  episode: Episode,
  outcome: 'episode_error' | 'model_error',
  cause: readonly string[],
  report: ReportBody,
): void {
  const ending = settle(decision.run, episode, { outcome, cause })
  endAttempt(decision, episode, { ending, report })
}

function decideGradeReport(decision: Decision, episode: Episode, input: InputOf<'reported'>): void {
  const { report, flags = [], fault } = input
  const left = { flags }
  if (report.kind === 'returned') gradeGiven(decision, episode, report, left)
  else if (report.kind === 'aborted') {
    const cause = 'the grader ran out of time'
    gradeFailed(decision, episode, { outcome: 'grade_timeout', cause, left })
  } else {
    const cause = boundedCause(report.cause).join(': ')
    const blame = fault === undefined ? {} : { fault }
    gradeFailed(decision, episode, { outcome: 'grade_error', cause, ...blame, left })
  }
}

function bodyOf({ run }: Decision, input: InputOf<'reported'>): ReportBody {
  const { agentMs, modelMs, flags, artifacts } = input
  return {
    // A program's clock is the run's own: it stands still while the daemon is away.
    ...(isDuration(agentMs) && run.policy.stopMs === 0 ? { agentMs } : {}),
    ...(isDuration(modelMs) ? { modelMs } : {}),
    ...(flags && flags.length > 0 ? { flags } : {}),
    ...(artifacts && artifacts.length > 0
      ? { artifacts: artifacts.slice(0, CORE_LIMITS.artifacts) }
      : {}),
  }
}

function withData(report: WorkerReport, body: ReportBody): ReportBody {
  if (report.kind !== 'returned') return body
  const { dataJson, dataBlob } = report
  return {
    ...body,
    ...(dataJson === undefined ? {} : { dataJson }),
    ...(dataBlob === undefined ? {} : { dataBlob }),
  }
}

function isDuration(ms: number | undefined): ms is number {
  return ms !== undefined && Number.isFinite(ms) && ms >= 0
}
