import { type Artifact, type AttemptRow, RESULT_SCHEMA_VERSION } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import type { UnrecordedRow } from '../run/effect.ts'
import { attemptOf } from '../run/effects.ts'
import type { Usage } from '../run/input.ts'
import type { Attempt, Episode, PhaseClock, Run } from '../run/run.ts'
import type { FinalEnding } from './ending.ts'
import { episodeId } from './episode-id.ts'

/** The row of an episode that has ended; the log of results gives it its cursor. */
export function rowOf(
  run: Run,
  episode: Episode,
  ending: FinalEnding,
  atMs: number,
): UnrecordedRow {
  const attempt = episode.current
  const report = attempt?.report
  const data = parseData(report?.dataJson)
  const { costMicros, ...usage }: Usage = attempt?.usage ?? NO_USAGE
  return {
    schema: RESULT_SCHEMA_VERSION,
    run: run.policy.run,
    key: episode.key,
    episode: episodeId(run.policy.run, episode.index),
    group: episode.group ?? episode.key,
    member: episode.member,
    index: episode.index,
    attempt: episode.attempt,
    attempts: attempt
      ? inOrder([...episode.attempts, attemptRow(episode, attempt)])
      : episode.attempts,
    parent: null,
    seed: episode.seed,
    policyVersion: attempt?.policyVersion ?? run.policyVersion,
    tags: run.policy.tags,
    from: episode.own?.from ?? run.policy.from,
    outcome: ending.outcome,
    flags: attempt?.flags ?? [],
    valid: ending.valid,
    dropped: ending.dropped === true,
    reward: ending.reward,
    rewards: ending.rewards === null ? null : { ...ending.rewards },
    data: data.value,
    dataBlob: report?.dataBlob ?? null,
    error: ending.cause[0] ?? report?.error ?? data.error,
    cause: [...ending.cause],
    artifacts: artifactsOf(attempt),
    leftOut: [...(attempt?.left?.leftOut ?? [])],
    kept: attempt?.left?.kept ?? null,
    phases: { ...(attempt?.clock ?? NO_CLOCK) },
    usage,
    cost: costMicros ?? null,
    sandbox: attempt?.sandbox ?? null,
    node: attempt?.node ?? null,
    startedAt: isoTime(attempt?.admittedAtMs ?? atMs),
    endedAt: isoTime(atMs),
  }
}

/** What its worker gave a name keeps it. */
function artifactsOf(attempt: Attempt | null): Artifact[] {
  const named = attempt?.report?.artifacts ?? []
  const names = new Set(named.map(({ name }) => name))
  const collected = attempt?.left?.artifacts ?? []
  return [...named, ...collected.filter(({ name }) => !names.has(name))]
}

/** The attempt is over and not the one that counts. */
export function keepAttempt(episode: Episode): void {
  const { attempts } = episode
  attempts.push(attemptRow(episode, attemptOf(episode)))
  inOrder(attempts)
  if (attempts.length > CORE_LIMITS.attemptsKept) attempts.shift()
}

/** A hedge may end before the attempt that it was begun beside. */
function inOrder(attempts: AttemptRow[]): AttemptRow[] {
  return attempts.sort((a, b) => a.attempt - b.attempt)
}

/** An attempt with its evidence, once its end is decided. */
function attemptRow(episode: Episode, attempt: Attempt): AttemptRow {
  return {
    attempt: episode.attempt,
    outcome: attempt.ending?.outcome ?? null,
    sandbox: attempt.sandbox,
    node: attempt.node,
    cause: [...(attempt.ending?.cause ?? [])],
    phases: { ...attempt.clock },
  }
}

const NO_USAGE = { cpuMs: 0, memoryPeakBytes: 0, diskBytes: 0, networkBytes: 0 } as const
const NO_CLOCK: PhaseClock = {
  queuedMs: 0,
  createMs: 0,
  setupMs: 0,
  agentMs: 0,
  modelMs: 0,
  gradeMs: 0,
  teardownMs: 0,
}

function parseData(json: string | null | undefined): { value: unknown; error: string | null } {
  if (json === null || json === undefined) return { value: null, error: null }
  try {
    return { value: JSON.parse(json), error: null }
  } catch {
    return { value: null, error: 'the data that the episode returned is not JSON' }
  }
}

/** Date only formats here: the time is an input's. */
export function isoTime(atMs: number): string {
  return new Date(atMs).toISOString()
}
