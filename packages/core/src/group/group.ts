import type { GroupRule, Outcome, ResultGroup } from '@sandlot/protocol'
import type { Episode, Run } from '../run/run.ts'

/**
 * A group of a run that has them. It is open until `group_ended`, which no group meets twice; then its members that are still live are
 * ended, and with the last of them it is forgotten.
 */
export interface Group {
  readonly name: string
  /** Position among the groups of the run. */
  readonly order: number
  /** Episodes that were put so far. */
  members: number
  /** Those of them that were admitted at least once. */
  started: number
  /** When the first of them was. */
  startedAtMs: number | null
  /** On the run's own clock, when the last of all its members was first admitted: from then on a cut counts. */
  armedAtMs: number | null
  /** From now on `need` suffices. */
  cut: boolean
  /** The results that count, in the order of their completion. */
  counted: CountedResult[]
  /** Valid results that did not count, because their policy was too old by then. */
  stale: number
  /** How the members ended that have. */
  readonly outcomes: Partial<Record<Outcome, number>>
  /** Key of the member whose outcome drops the whole group. */
  droppedBy: string | null
  /** What its members took that have ended, on the run's own clock. */
  elapsedMs: number
  state: 'open' | ResultGroup['state']
  /** Derived, as the next. */
  readonly live: Set<Episode>
  /** Place in `cuts`. */
  cutAt: number
}

export interface CountedResult {
  readonly episode: number
  readonly policyVersion: number
}

export function newGroup(name: string, order: number): Group {
  return {
    name,
    order,
    members: 0,
    started: 0,
    startedAtMs: null,
    armedAtMs: null,
    cut: false,
    counted: [],
    stale: 0,
    outcomes: {},
    droppedBy: null,
    elapsedMs: 0,
    state: 'open',
    live: new Set(),
    cutAt: -1,
  }
}

/** The rule of a run that has groups. */
export function ruleOf(run: Run): GroupRule {
  const { group } = run.policy
  if (group === null) throw new Error('the run has no groups')
  return group
}

export function membersMax({ size, extra }: GroupRule): number {
  return size + extra
}

/** Members that may still be put. */
export function missing(run: Run, group: Group): number {
  return run.closed ? 0 : membersMax(ruleOf(run)) - group.members
}

/** Whether an attempt that began with this version of the policy is too far behind the present one. */
export function isStale(run: Run, policyVersion: number): boolean {
  const maxLag = run.policy.group?.maxLag ?? null
  return maxLag !== null && run.policyVersion - policyVersion > maxLag
}
