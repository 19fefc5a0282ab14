import { createKeyTable } from '../order/key-table.ts'
import { emptyTotals } from '../report/totals.ts'
import { emptyWatch } from './failures.ts'
import { emptyIndex } from './index.ts'
import type { RunPolicy } from './policy.ts'
import type { Run } from './run.ts'

/** A run without tasks and workers. */
export function initialRun(policy: RunPolicy, startedAtMs: number): Run {
  return {
    policy,
    status: 'waiting',
    reason: null,
    closed: false,
    startedAtMs,
    nowMs: startedAtMs,
    nextIndex: 0,
    nextToken: 1,
    nextSeq: 1,
    nextGroup: 0,
    policyVersion: 0,
    rowsRead: 0,
    unreadGroups: [],
    kept: 0,
    downMs: 0,
    stoodMs: 0,
    stoodSinceMs: startedAtMs,
    keys: createKeyTable(),
    live: new Map(),
    hedges: new Map(),
    groups: new Map(),
    groupsOver: createKeyTable(),
    workers: new Map(),
    nodes: new Map(),
    unrecorded: new Map(),
    failures: emptyWatch(),
    totals: emptyTotals(),
    index: emptyIndex(),
  }
}
