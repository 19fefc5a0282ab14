import { type Group, newGroup } from '../group/group.ts'
import { CORE_LIMITS } from '../limits.ts'
import { createKeyTable } from '../order/key-table.ts'
import { emptyTotals } from '../report/totals.ts'
import { newEpisode } from './apply-tasks.ts'
import { emptyIndex, fillIndex } from './index.ts'
import { initialRun } from './initial.ts'
import type { OwnTerms } from './input.ts'
import type { Episode, Run, Worker } from './run.ts'

/** A run as JSON: everything but what can be derived. */
export interface SavedRun
  extends Omit<
    Run,
    | 'keys'
    | 'live'
    | 'hedges'
    | 'groups'
    | 'groupsOver'
    | 'workers'
    | 'nodes'
    | 'unrecorded'
    | 'index'
  > {
  readonly version: 1
  readonly keys: string
  readonly live: readonly (SavedEpisode | SavedTask)[]
  readonly hedges: readonly SavedEpisode[]
  readonly groups: readonly Omit<Group, 'live' | 'cutAt'>[]
  readonly groupsOver: string
  readonly workers: readonly Omit<Worker, 'leases' | 'dueAt'>[]
  readonly nodes: readonly (readonly [string, { sandboxes: number; creating: number }])[]
  readonly unrecorded: readonly (readonly [
    number,
    Run['unrecorded'] extends Map<number, infer R> ? R : never,
  ])[]
}

type SavedEpisode = Omit<Episode, 'peers' | 'sinceMs' | 'orderAt' | 'dueAt' | 'straggleAt'>

/** An episode that was never admitted is its task alone: they may be many, and each checkpoint writes them all. */
type SavedTask = readonly [
  index: number,
  key: string,
  taskJson: string | null,
  taskBlob: string | null,
  group: string | null,
  seed: number,
  expectedMs: number,
  atMs: number,
  member: number,
  own?: OwnTerms,
]

/**
 * A checkpoint's state. It shares parts with the run: make it text before the next input.
 * Equal runs give equal JSON, whatever way they came about.
 */
export function saveRun(run: Run): SavedRun {
  const {
    keys,
    live,
    hedges,
    groups,
    groupsOver,
    workers,
    nodes,
    unrecorded,
    index: _,
    ...plain
  } = run
  return {
    version: 1,
    ...plain,
    keys: keys.save(),
    live: Array.from(live.values(), saveEpisode),
    hedges: Array.from(hedges.values(), saveAttempt),
    groups: Array.from(groups.values(), ({ live: _l, cutAt: _c, ...group }) => group),
    groupsOver: groupsOver.save(),
    workers: Array.from(workers.values(), ({ leases: _l, dueAt: _d, ...worker }) => worker),
    nodes: [...nodes],
    unrecorded: [...unrecorded],
  }
}

/**
 * The run that was saved. Takes what it is given as its own.
 * @throws Error for a version that this program does not know.
 */
export function loadRun(saved: SavedRun): Run {
  const { version, keys, live, hedges, groups, groupsOver, ...more } = saved
  const { workers, nodes, unrecorded, ...plain } = more
  if (version !== 1) throw new Error(`a saved run of version ${version} is not known`)
  const { group = null, hedge = null, stopMs = 0, collects = false, keep = null } = plain.policy
  const policy = { ...plain.policy, group, hedge, stopMs, collects, keep }
  const run: Run = {
    // What a checkpoint of an earlier program lacks is as at the start.
    ...initialRun(policy, plain.startedAtMs),
    ...plain,
    policy,
    totals: { ...emptyTotals(), ...plain.totals },
    keys: createKeyTable(keys),
    live: new Map(live.map(loadEpisode).map((episode) => [episode.index, episode])),
    hedges: new Map((hedges ?? []).map((saved) => [saved.index, loadAttempt(saved)])),
    groups: new Map((policy.group ? groups : []).map((group) => [group.name, loadGroup(group)])),
    groupsOver: createKeyTable(groupsOver),
    workers: new Map(workers.map((worker) => [worker.name, loadWorker(worker)])),
    nodes: new Map(nodes),
    unrecorded: new Map(unrecorded),
    index: emptyIndex(),
  }
  fillIndex(run)
  return run
}

function saveEpisode(episode: Episode): SavedEpisode | SavedTask {
  if (episode.attempt === 0) {
    const { index, key, taskJson, taskBlob, group, seed, expectedMs, phaseAtMs, member, own } =
      episode
    const saved = [index, key, taskJson, taskBlob, group, seed, expectedMs, phaseAtMs] as const
    return own === null ? [...saved, member] : [...saved, member, own]
  }
  return saveAttempt(episode)
}

function saveAttempt(episode: Episode): SavedEpisode {
  const { peers: _p, sinceMs: _s, orderAt: _o, dueAt: _d, straggleAt: _a, ...saved } = episode
  return saved
}

function loadAttempt(saved: SavedEpisode): Episode {
  const { made = saved.attempt, own = null } = saved
  return { ...saved, made, own, peers: null, sinceMs: 0, orderAt: -1, dueAt: -1, straggleAt: -1 }
}

function loadWorker(saved: SavedRun['workers'][number]): Worker {
  const { graceMs = CORE_LIMITS.leaseMs } = saved
  return { ...saved, graceMs, leases: new Set(), dueAt: -1 }
}

function loadGroup(saved: SavedRun['groups'][number]): Group {
  return { ...newGroup(saved.name, saved.order), ...saved }
}

function loadEpisode(saved: SavedEpisode | SavedTask): Episode {
  if (!isTask(saved)) return loadAttempt(saved)
  const [index, key, taskJson, taskBlob, group, seed, expectedMs, atMs, member = 0, own = null] =
    saved
  return newEpisode({
    ...{ index, key, taskJson, taskBlob, own, group, member, seed, expectedMs, atMs },
    peers: null,
  })
}

function isTask(saved: SavedEpisode | SavedTask): saved is SavedTask {
  return Array.isArray(saved)
}
