import type { FinalEnding } from '../episode/ending.ts'
import { addToSketch } from '../report/sketch.ts'
import type { EventOf, Sink } from '../run/event.ts'
import { elapsedMs, ownClock } from '../run/own-clock.ts'
import type { Episode, Run } from '../run/run.ts'
import { endedGroup } from './ended-group.ts'
import { type Group, isStale, missing, newGroup, ruleOf } from './group.ts'

/** A new member; the first opens the group. */
export function joinGroup(run: Run, name: string): Group {
  const group = run.groups.get(name) ?? newGroup(name, run.nextGroup++)
  run.groups.set(name, group)
  group.members++
  return group
}

/** A member was admitted for the first time. With the first of them its peers come to the head of the queue. */
export function startMember(run: Run, group: Group, atMs: number): void {
  if (group.started === 0) begin(run, group, atMs)
  group.started++
  arm(run, group, atMs)
}

/** A member has ended, and its row waits to be recorded. */
export function leaveGroup(
  run: Run,
  episode: Episode,
  ending: FinalEnding,
  at: { readonly atMs: number; readonly policyVersion: number },
): void {
  const group = episode.peers
  if (!group) return
  const { outcome, valid, dropsGroup } = ending
  const { policyVersion, atMs } = at
  group.live.delete(episode)
  group.outcomes[outcome] = (group.outcomes[outcome] ?? 0) + 1
  run.index.touched.add(group)
  countMember(run, group, { outcome, valid, tookMs: elapsedMs(run, episode, atMs) })
  if (group.state === 'open') {
    if (dropsGroup) group.droppedBy ??= episode.key
    if (valid && isStale(run, policyVersion)) group.stale++
    else if (valid) group.counted.push({ episode: episode.index, policyVersion })
  }
  forgetIfOver(run, group)
}

export function applyGroupCut(run: Run, event: EventOf<'group_cut'>): void {
  const group = groupOf(run, event.group)
  group.cut = true
  run.index.cuts.remove(group)
  run.index.touched.add(group)
}

export function applyGroupEnded(run: Run, event: EventOf<'group_ended'>, effects: Sink): void {
  const group = groupOf(run, event.group)
  const { groups } = run.totals
  group.state = event.state
  run.index.cuts.remove(group)
  groups.reasons[event.reason] = (groups.reasons[event.reason] ?? 0) + 1
  if (group.state === 'complete') {
    groups.members += group.members
    groups.memberMs += group.elapsedMs
  }
  const end = endedGroup(run, group, event)
  const seq = run.nextSeq++
  run.unrecorded.set(seq, end)
  if (run.policy.ahead !== null) run.unreadGroups.push(run.totals.ended)
  effects?.push({ type: 'append_group', seq, group: end })
  forgetIfOver(run, group)
}

/** Nothing comes any more that was not put yet. */
export function closeGroups(run: Run, atMs: number): void {
  for (const group of [...run.groups.values()]) {
    arm(run, group, atMs)
    run.index.touched.add(group)
    forgetIfOver(run, group)
  }
}

/** Results that became too old while their group waited for others do not count in it any more. */
export function dropStale(run: Run): void {
  if ((run.policy.group?.maxLag ?? null) === null) return
  for (const group of run.groups.values()) {
    if (group.state !== 'open') continue
    const counted = group.counted.filter(({ policyVersion }) => !isStale(run, policyVersion))
    if (counted.length === group.counted.length) continue
    group.stale += group.counted.length - counted.length
    group.counted = counted
    run.index.touched.add(group)
  }
}

/** Out of the queue first: its order must not change under an episode that stands in it. */
function begin(run: Run, group: Group, atMs: number): void {
  const { queued } = run.index
  const waiting = [...group.live].filter(({ phase }) => phase === 'queued')
  for (const peer of waiting) queued.remove(peer)
  group.startedAtMs = atMs
  for (const peer of waiting) queued.push(peer)
}

/** A cut counts from when the last of all members has started: so each of them has that long. */
function arm(run: Run, group: Group, atMs: number): void {
  if (group.armedAtMs !== null || group.state !== 'open') return
  if (group.started < group.members || missing(run, group) > 0) return
  group.armedAtMs = ownClock(run, atMs)
  if (ruleOf(run).cut !== null) run.index.cuts.push(group)
}

function countMember(
  run: Run,
  group: Group,
  member: Pick<FinalEnding, 'outcome' | 'valid'> & { readonly tookMs: number },
): void {
  const { groups } = run.totals
  const { outcome, valid, tookMs } = member
  group.elapsedMs += tookMs
  addToSketch(valid ? groups.ended : groups.stopped, tookMs)
  if (group.state !== 'complete') return
  groups.memberMs += tookMs
  if (outcome !== 'cancelled_quorum') return
  groups.stragglers++
  groups.stragglerMs += tookMs
}

/** It has ended, no member is live, and none can come any more. */
function forgetIfOver(run: Run, group: Group): void {
  if (group.state === 'open' || group.live.size > 0 || missing(run, group) > 0) return
  run.groups.delete(group.name)
  run.index.touched.delete(group)
  // Of a prompt its key tells that it was there.
  if (ruleOf(run).by === 'name' && !run.closed) run.groupsOver.add(group.name, '')
}

function groupOf(run: Run, name: string): Group {
  const group = run.groups.get(name)
  if (!group) throw new Error(`the log speaks of the group ${name}, which is not there`)
  return group
}
