import type { Run } from './run.ts'

/** Whether the longest-expected episode may have a slot and a sandbox now. */
export function canAdmit(run: Run): boolean {
  return run.status === 'running' && run.index.queued.size > 0 && admissionBound(run) === null
}

/** Groups that the furthest reader has taken; only told where the policy has `ahead`. */
export function groupsRead(run: Run): number {
  return groupsEnded(run) - run.unreadGroups.length
}

export function groupsEnded({ totals }: Run): number {
  let ended = 0
  for (const count of Object.values(totals.groups.reasons)) ended += count
  return ended
}

/** Rows that nobody has read; groups, where there are any: their rows are read with them. */
export function unreadResults(run: Run): number {
  return run.policy.group ? run.unreadGroups.length : run.totals.ended - run.rowsRead
}

/** What stands between a queued episode and its sandbox; null: nothing. */
export function admissionBound(
  run: Run,
): 'consumer' | 'concurrency' | 'capacity' | 'create-rate' | null {
  const { slots, counts } = run.index
  const { ahead } = run.policy
  if (ahead !== null && unreadResults(run) >= ahead) return 'consumer'
  if (slots.size >= run.policy.concurrency) return 'concurrency'
  if (run.nodes.size === 0) return null
  let sandboxes = 0
  let creating = 0
  for (const node of run.nodes.values()) {
    sandboxes += node.sandboxes
    creating += node.creating
  }
  if (slots.size >= sandboxes) return 'capacity'
  return counts.creating >= creating ? 'create-rate' : null
}
