import { type Group, isStale, membersMax, missing } from '../group/group.ts'
import type { Step } from '../run/decision.ts'
import type { UnrecordedGroup, UnrecordedRow } from '../run/effect.ts'
import type { RunEvent } from '../run/event.ts'
import type { InputBody } from '../run/input.ts'
import { ownClock } from '../run/own-clock.ts'
import type { RunPolicy } from '../run/policy.ts'
import type { Episode, Run } from '../run/run.ts'
import type { RecordedGroup, RecordedRow } from './fake-journal.ts'
import { must } from './invariants.ts'

/** After every step: what is to end has ended, and what has ended does not go on. */
export function checkGroups(run: Run, step: Step, input: InputBody): void {
  if (run.policy.group === null) return
  checkOrder(run, step)
  checkCuts(run, step, input)
  if (run.status === 'cancelling' || run.index.touched.size > 0) return
  for (const group of run.groups.values()) {
    if (group.state === 'open') checkOpen(run, group)
    else {
      const going = [...group.live].filter(({ phase }) => phase !== 'releasing')
      must(going.length === 0, 'nothing of a group that has ended goes on', () => group.name)
    }
  }
  for (const episode of run.index.slots) {
    const version = episode.current?.policyVersion ?? 0
    const began = BEGUN.has(episode.phase)
    must(!began || !isStale(run, version), 'no attempt lags further than it may', () => episode.key)
  }
}

function checkOpen(run: Run, group: Group): void {
  const { size = 0, need = 0 } = run.policy.group ?? {}
  const valid = group.counted.length
  const coming = group.live.size + missing(run, group)
  const found = () => ({ ...group, live: [...group.live].map(({ key }) => key) })
  must(valid < size, 'a group with all of its results is complete', found)
  must(!group.cut || valid < need, 'a group that was cut is complete with what it needs', found)
  must(valid + coming >= need, 'a group that can not be complete any more has failed', found)
  must(coming > 0, 'a group without a member that may come has ended', found)
  must(group.droppedBy === null, 'a group of which a member drops it has failed', found)
}

/** A cut is taken, and none is overdue once the time was looked at. */
function checkCuts(run: Run, step: Step, input: InputBody): void {
  for (const event of step.events) {
    const group = event.type === 'group_cut' ? run.groups.get(event.group) : undefined
    must(!group || group.cut, 'a cut is taken', () => group?.name)
  }
  const after = run.policy.group?.cut?.after
  if (input.type !== 'tick' || run.status !== 'running' || typeof after !== 'number') return
  for (const { name, state, cut, armedAtMs } of run.groups.values()) {
    if (state !== 'open' || cut || armedAtMs === null) continue
    const isDue = ownClock(run, run.nowMs) - armedAtMs >= after + ROUNDING_MS
    must(!isDue || step.more, 'a group is cut when it is time', () => name)
  }
}

/** Nothing new was begun while a group that had begun waited for its members. */
function checkOrder(run: Run, step: Step): void {
  const admitted = step.events.findLast(({ type }) => type === 'admitted')
  const last = admitted && 'episode' in admitted ? run.live.get(admitted.episode) : undefined
  if (!last) return
  const isFirst = last.peers?.started === 1 && last.attempt === 1
  const order = isFirst ? Number.POSITIVE_INFINITY : (last.peers?.order ?? 0)
  for (const { phase, peers } of run.live.values()) {
    if (phase !== 'queued' || peers === null || peers === last.peers) continue
    const waits = peers.startedAtMs !== null && peers.order < order
    must(!waits, 'groups that have begun go first', () => [peers.name, last.key])
  }
}

interface Ended {
  readonly results: readonly RecordedRow[]
  readonly groups: readonly RecordedGroup[]
  readonly log: readonly string[]
  readonly cancelled: boolean
}

/** When all is over: each group against its rows and the log, by rules that know nothing of how it was decided. */
export function checkEndedGroups(policy: RunPolicy, ended: Ended): void {
  const { results, groups } = ended
  if (policy.group === null) {
    must(groups.length === 0, 'no groups without a rule for them', () => groups)
    return
  }
  const names = new Set(results.map(({ row }) => row.group))
  const told = groups.map(({ group }) => group.group)
  must(
    told.length === names.size && told.every((name) => names.has(name)),
    'every group ends once',
    () => [...[[...names], told]],
  )
  const events = ended.log.map((line) => JSON.parse(line) as RunEvent)
  for (const recorded of groups) checkEnded(policy, recorded, { ...ended, events })
  const endOf = new Map(groups.map(({ seq, group }) => [group.group, seq]))
  for (const { seq, row } of results) {
    if (row.outcome === 'cancelled_quorum') {
      const inTime = seq > (endOf.get(row.group) ?? Number.POSITIVE_INFINITY)
      must(inTime && !row.valid, 'only a group that has ended cancels its members', () => row)
    }
    const isStale = row.outcome === 'cancelled_stale'
    must(!isStale || policy.group.maxLag !== null, 'stale only by a bound', () => row)
  }
}

function checkEnded(
  policy: RunPolicy,
  { seq, group }: RecordedGroup,
  ended: Ended & { readonly events: readonly RunEvent[] },
): void {
  const { size = 0, maxLag = null } = policy.group ?? {}
  const all = ended.results.filter(({ row }) => row.group === group.group)
  const before = all.filter((each) => each.seq < seq).map(({ row }) => row)
  const counts = (row: UnrecordedRow) =>
    row.valid && (maxLag === null || group.policyVersion - row.policyVersion <= maxLag)
  const counted = before.filter(({ episode }) => group.episodes.includes(episode))
  const found = () => ({ group, rows: all })
  const distinct = new Set(group.episodes).size === group.episodes.length
  must(distinct && counted.length === group.episodes.length, 'a group counts rows before it', found)
  must(counted.every(counts), 'only valid results that are not too old count', found)
  must(counted.length <= size, 'never more than the size counts', found)
  const outcomes = Object.values(group.outcomes).reduce((sum, count) => sum + count, 0)
  must(outcomes === before.length, 'the outcomes of those that had ended are told', found)
  must((group.error === null) === (group.state === 'complete'), 'a failure says why', found)
  const valid = before.filter(counts).length
  if (group.state === 'complete') checkComplete(policy, group, { all, before, ...ended })
  else checkFailed(policy, group, { all, before, valid, ...ended })
}

interface Seen {
  readonly all: readonly RecordedRow[]
  readonly before: readonly UnrecordedRow[]
  readonly events: readonly RunEvent[]
  readonly cancelled: boolean
}

function checkComplete(policy: RunPolicy, group: UnrecordedGroup, seen: Seen): void {
  const { size = 0, need = 0 } = policy.group ?? {}
  const count = group.episodes.length
  const found = () => ({ group, rows: seen.all })
  must(count >= need, 'a group is not complete with less than it needs', found)
  if (group.reason === 'size') must(count === size, 'complete by its size', found)
  else if (group.reason === 'rest') {
    must(seen.before.length === seen.all.length, 'the rest is in when nothing runs any more', found)
  } else checkCut(policy, group, seen)
}

/** Less than the size suffices only after the cut, and that comes only when each member had its time. */
function checkCut(policy: RunPolicy, group: UnrecordedGroup, { all, events }: Seen): void {
  const { cut = null, size = 0 } = policy.group ?? {}
  const found = () => ({ group, rows: all })
  must(cut !== null && group.reason === 'cut', 'a quorum is for groups that are cut', found)
  must(group.episodes.length < size, 'a quorum is less than the size', found)
  const at = events.findIndex((event) => event.type === 'group_cut' && event.group === group.group)
  const endsAt = events.findIndex(
    (event) => event.type === 'group_ended' && event.group === group.group,
  )
  must(at !== -1 && at < endsAt, 'a quorum only after the cut', found)
  const members = new Set(all.map(({ row }) => row.index))
  let lastStartMs = 0
  for (const event of events) {
    if (event.type !== 'admitted' || !members.delete(event.episode)) continue
    lastStartMs = Math.max(lastStartMs, event.atMs)
  }
  const cutMs = events[at]?.atMs ?? 0
  const leastMs = typeof cut?.after === 'number' ? cut.after : 0
  must(members.size === 0, 'a cut only when every member has begun', found)
  must(cutMs - lastStartMs >= leastMs - ROUNDING_MS, 'each member has its time before a cut', found)
}

function checkFailed(
  policy: RunPolicy,
  group: UnrecordedGroup,
  seen: Seen & { readonly valid: number },
): void {
  const { all, before, valid, events, cancelled } = seen
  const found = () => ({ group, rows: all })
  must(group.episodes.length === 0, 'a group that has failed has no results', found)
  if (group.reason === 'cancelled') must(cancelled, 'cancelled by somebody', found)
  else if (group.reason === 'dropped') {
    const drops = before.some(({ outcome }) => policy.actions[outcome] === 'drop-group')
    must(drops, 'dropped by an outcome that drops its group', found)
  } else {
    const endsAt = events.findIndex(
      (event) => event.type === 'group_ended' && event.group === group.group,
    )
    const closed = events.findIndex(
      (event) =>
        event.type === 'tasks_closed' ||
        (event.type === 'status_changed' && event.status === 'cancelling'),
    )
    const rule = policy.group
    const members = rule && (closed === -1 || closed > endsAt) ? membersMax(rule) : all.length
    const most = valid + members - before.length
    must(group.reason === 'unreachable' && most < (rule?.need ?? 0), 'it could not come', found)
  }
}

const BEGUN: ReadonlySet<Episode['phase']> = new Set([
  'agent',
  'model',
  'stopping',
  'grade_ready',
  'grade_offered',
  'grading',
])

/** Two sums of the same times differ by less. */
const ROUNDING_MS = 1e-3
