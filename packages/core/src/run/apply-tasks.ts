import { indexEpisode } from '../episode/move.ts'
import { joinGroup } from '../group/apply-group.ts'
import type { Group } from '../group/group.ts'
import { membersOf } from '../group/members.ts'
import type { EventOf } from './event.ts'
import type { TaskInput } from './input.ts'
import type { Episode, Run } from './run.ts'

export function applyTasksAdded(run: Run, event: EventOf<'tasks_added'>): void {
  for (const task of event.tasks) {
    run.keys.add(task.key, task.digest)
    addEpisodes(run, task, event.atMs)
  }
}

function addEpisodes(run: Run, task: TaskInput, atMs: number): void {
  const { taskJson, taskBlob, own = null, expectedMs = 0 } = task
  const put = run.groups.get(task.group ?? '')?.members ?? 0
  for (const { key, group, member, seed } of membersOf(run, task, put)) {
    const peers = run.policy.group === null || group === null ? null : joinGroup(run, group)
    const episode = newEpisode({
      ...{ index: run.nextIndex++, key, group, member, seed },
      ...{ taskJson, taskBlob, own, expectedMs, atMs, peers },
    })
    run.live.set(episode.index, episode)
    peers?.live.add(episode)
    // Of a group that has ended it is ended at once.
    if (peers) run.index.touched.add(peers)
    indexEpisode(run, episode)
    run.totals.tasks++
  }
}

export interface NewEpisode
  extends Pick<
    Episode,
    'index' | 'key' | 'group' | 'member' | 'seed' | 'taskJson' | 'taskBlob' | 'own'
  > {
  readonly expectedMs: number
  readonly atMs: number
  readonly peers: Group | null
}

/** Only `tasks_added` makes one, and a checkpoint that restores it. */
export function newEpisode(task: NewEpisode): Episode {
  const { index, key, taskJson, taskBlob, own, group, member, seed, expectedMs } = task
  const { peers, atMs } = task
  return {
    ...{ index, key, taskJson, taskBlob, own, group, member, seed, expectedMs, peers },
    phase: 'queued',
    phaseAtMs: atMs,
    dueMs: null,
    attempt: 0,
    made: 0,
    isHedge: false,
    startedMs: null,
    workersLost: 0,
    spent: { infra: 0, model: 0, timeout: 0, policy: 0 },
    attempts: [],
    current: null,
    sinceMs: 0,
    orderAt: -1,
    dueAt: -1,
    straggleAt: -1,
  }
}
