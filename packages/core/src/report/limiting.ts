import type { LimitingFactor } from '@sandlot/protocol'
import { admissionBound, unreadResults } from '../run/admission.ts'
import type { Run } from '../run/run.ts'

/** What would have to grow for the run to go faster, as things stand now. */
export function limitingFactor(run: Run): LimitingFactor {
  const { counts, slots, queued, backoff } = run.index
  if (run.live.size === 0 || run.status === 'paused' || run.status === 'cancelling') return 'none'
  const waiting = counts.ready + counts.grade_ready
  if (run.status === 'waiting' || waiting * 2 > slots.size) return 'worker'
  // Nothing could start, whatever grew: the last ones run, or the next are not submitted yet.
  if (queued.size === 0) return run.closed || backoff.size > 0 ? 'tail' : 'none'
  const bound = admissionBound(run)
  if (bound === 'concurrency' && counts.model * 2 > slots.size) return 'model'
  return bound ?? 'none'
}

/** By what the factor is seen, for a person. */
export function evidenceOf(run: Run, factor: LimitingFactor): string {
  const { counts, slots, queued } = run.index
  const { concurrency, ahead, group } = run.policy
  const held = slots.size
  const wait = `${queued.size} ${queued.size === 1 ? 'waits' : 'wait'} to begin`
  switch (factor) {
    case 'concurrency':
      return `all ${concurrency} slots hold an episode, and ${wait}`
    case 'capacity':
      return `the machine grants ${granted(run, 'sandboxes')} of the ${concurrency} sandboxes, and ${wait}`
    case 'create-rate':
      return `${counts.creating} sandboxes wait for room or are being created, as many at once as the machine starts, and ${wait}`
    case 'consumer': {
      const what = group ? 'groups' : 'results'
      return `${unreadResults(run)} ${what} are not read, and \`ahead\` allows ${ahead}`
    }
    case 'worker':
      if (run.workers.size === 0) return 'no worker is there'
      return `${counts.ready + counts.grade_ready} of ${held} sandboxes wait for a worker`
    case 'model':
      return `${counts.model} of ${held} episodes wait for the model, and ${wait}`
    case 'tail':
      return `the last ${run.live.size} are under way, and ${concurrency - held} of ${concurrency} slots are empty`
    case 'none':
      return nothing(run)
  }
}

function nothing(run: Run): string {
  if (run.live.size === 0) return 'no episode is under way'
  if (run.status === 'paused') return 'the run is paused'
  if (run.status === 'cancelling') return 'the run is being cancelled'
  const { slots } = run.index
  return `${slots.size} of ${run.policy.concurrency} slots hold an episode, and no more tasks have been put`
}

function granted(run: Run, what: 'sandboxes' | 'creating'): number {
  let sum = 0
  for (const node of run.nodes.values()) sum += node[what]
  return sum
}
