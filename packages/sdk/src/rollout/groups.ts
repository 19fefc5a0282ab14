/** Reads the groups of a run: one after another, or as many as a step of training takes. */
import { type GroupsPage, LIMITS, type ResultGroup, SandlotError } from '@sandlot/protocol'
import type { Waiting } from '../connection/context.ts'

export interface GroupsOptions extends Waiting {
  /** Cursor of the last group that was handled, saved with a checkpoint; default: from the first. */
  readonly from?: string
  /** Also those that failed, and those whose results have become too old for `maxLag` before they were read. */
  readonly all?: boolean
}

export interface BatchOptions extends Waiting {
  /** Cursor of a batch, saved with a checkpoint: goes on after it. Default: after the last batch of this run object, or from the first. */
  readonly from?: string
}

/** What one step of training takes. */
export interface Batch {
  /** As many as were asked for; fewer only at the end of the run, and none when it is over. */
  readonly groups: readonly ResultGroup[]
  /** Of the last group, for `from`: save it with the checkpoint of this step. */
  readonly cursor: string
  /** How long they were waited for. */
  readonly waitedMs: number
  /** Groups among them that were left out: failed, or too old by now. */
  readonly failed: number
  readonly stale: number
}

export interface PageQuery {
  readonly after: string | undefined
  readonly limit: number
}

/** Asks for a page of groups, and waits where there is none yet. */
export type AskGroups = (query: PageQuery, waiting: Waiting) => Promise<GroupsPage>

/** Groups that a page has on average: a reader that falls behind asks less often. */
const GROUPS_PER_PAGE = 20

export async function* eachGroup(
  ask: AskGroups,
  { from, all = false, ...waiting }: GroupsOptions,
): AsyncGenerator<ResultGroup> {
  let after = from
  for (;;) {
    const page = await ask({ after, limit: GROUPS_PER_PAGE }, waiting)
    for (const group of page.groups) if (all || isUsable(group)) yield group
    after = page.cursor
    if (page.done) return
  }
}

/** Waits for so many groups. What was read is forgotten where it fails: the same call again begins where this one did. */
export async function nextBatch(
  ask: AskGroups,
  count: number,
  { from, ...waiting }: BatchOptions,
): Promise<Batch> {
  if (!Number.isInteger(count) || count < 1) {
    throw new SandlotError('invalid_request', `a batch has ${count} groups`, {
      hint: 'Ask for a whole number of groups, from 1.',
    })
  }
  const startedMs = performance.now()
  const groups: ResultGroup[] = []
  const left = { failed: 0, stale: 0 }
  let after = from
  for (let done = false; !done && groups.length < count; ) {
    const limit = Math.min(LIMITS.groupsPerPage, count - groups.length)
    const page = await ask({ after, limit }, waiting)
    for (const group of page.groups) {
      if (isUsable(group)) groups.push(group)
      else left[group.state === 'failed' ? 'failed' : 'stale']++
    }
    after = page.cursor
    done = page.done
  }
  return { groups, cursor: after ?? '', waitedMs: performance.now() - startedMs, ...left }
}

function isUsable({ state, stale }: ResultGroup): boolean {
  return state === 'complete' && !stale
}
