import type { Group } from '../group/group.ts'
import type { Episode, Run, Worker } from '../run/run.ts'

/**
 * All that is known of a run as text, by a way of its own: what a checkpoint forgets would be missing from both sides, if it were asked to
 * compare them. Of the many buckets of the sketches it has a sum in which each counts by its place.
 */
export function stateText(run: Run): string {
  const { index: _index, totals, live, hedges, groups, workers, ...plain } = run
  const { keys, groupsOver, nodes, unrecorded, ...rest } = plain
  const { phases, groups: ofGroups, hedges: ofHedges, ...counts } = totals
  const sketches = [
    ...Object.values(phases),
    ...[ofGroups.ended, ofGroups.stopped],
    ...Object.values(ofHedges.took).flatMap(({ ended, stopped }) => [ended, stopped]),
  ]
  const { ended: _ended, stopped: _stopped, ...groupCounts } = ofGroups
  return JSON.stringify([
    inOrder(rest),
    [...live.values()].map(episodeOf),
    [...hedges.values()].map(episodeOf),
    [...groups.values()].map(groupOf),
    [...workers.values()].map(workerOf),
    [keys.save(), groupsOver.save(), [...nodes], [...unrecorded]],
    [counts, groupCounts, ofHedges.started, ofHedges.won],
    sketches.map(({ count, buckets }) =>
      buckets.reduce((sum, each, at) => sum + each * (at + 1), count + buckets.length),
    ),
  ])
}

/** Without what is derived of the rest. */
function episodeOf(episode: Episode) {
  const { peers: _p, sinceMs: _s, orderAt: _o, dueAt: _d, straggleAt: _a, ...state } = episode
  return inOrder(state)
}

function groupOf({ live: _l, cutAt: _c, ...state }: Group) {
  return inOrder(state)
}

function workerOf({ leases: _l, dueAt: _d, ...state }: Worker) {
  return inOrder(state)
}

/** What was read back may have its fields in another order. */
function inOrder(state: object): unknown {
  return Object.entries(state).sort(([a], [b]) => (a < b ? -1 : 1))
}
