import { reportOf as factsOf, type Longest, longestOf, type RunFacts } from '@sandlot/core'
import type { RunReport, RunView } from '@sandlot/protocol'
import type { LiveRun } from './live-run.ts'
import type { RunRecord } from './run-record.ts'

export function viewOf(live: LiveRun, nowMs: number): RunView {
  const { record, actor, stage } = live
  const { run } = actor
  const told = factsOf(run, nowMs)
  const trouble = run.status === 'waiting' ? live.trouble() : undefined
  const facts = trouble === undefined ? told : { ...told, reason: trouble }
  if (run.status === 'finished') return compose(record, facts, run.nowMs)
  return compose(record, stage.draining ? { ...facts, reason: reasonOf(facts) } : facts, undefined)
}

const DRAINING = 'the daemon is draining: it admits nothing more until it is started again'

function reasonOf({ reason }: RunFacts): string {
  return reason === null ? DRAINING : `${reason}; ${DRAINING}`
}

export function reportOf(live: LiveRun, nowMs: number): RunReport {
  const { rows, groups } = live.readers
  const reading = { rows: rows.untold(nowMs), groups: groups.untold(nowMs) }
  const facts = factsOf(live.actor.run, nowMs, reading)
  const { elapsedMs, perSecond, limiting, saturation, rewardMean, attempts, retries } = facts
  const { causes, phases } = facts
  return {
    run: viewOf(live, nowMs),
    ...{ elapsedMs, perSecond, limiting, saturation, rewardMean, attempts, retries },
    ...{ causes, phases, longest: longestIn(live) },
    cost: facts.cost && live.currency !== null ? { currency: live.currency, ...facts.cost } : null,
    ...(facts.groups ? { groups: facts.groups } : {}),
    ...(facts.hedges ? { hedges: facts.hedges } : {}),
  }
}

/** Of a program the worker is the daemon itself, of which there is nothing to hear. */
function longestIn({ record, actor }: LiveRun): Longest[] {
  const longest = longestOf(actor.run)
  if (record.specification.program === undefined) return longest
  return longest.map((each) => ({ ...each, heardMs: null }))
}

function countsOf({ open, complete, failed }: NonNullable<RunReport['groups']>) {
  return { open, complete, failed }
}

function compose(record: RunRecord, facts: RunFacts, finishedAtMs: number | undefined): RunView {
  const { id, name, project, digest, createdAtMs, specification } = record
  const { state, reason, counts, outcomes, flags, groups, policyVersion } = facts
  return {
    ...{ id, name, project, state, digest, createdAtMs, counts, outcomes, flags, policyVersion },
    ...(groups ? { groups: countsOf(groups) } : {}),
    ...(reason === null ? {} : { reason }),
    ...(finishedAtMs === undefined ? {} : { finishedAtMs }),
    concurrency: specification.concurrency,
    tags: { ...specification.tags },
  }
}
