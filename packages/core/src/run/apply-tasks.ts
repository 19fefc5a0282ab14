import { indexEpisode } from '../episode/move.ts'
import type { EventOf, Sink } from './event.ts'
import type { TaskInput } from './input.ts'
import type { Episode, Run } from './run.ts'

export function applyTasksAdded(run: Run, event: EventOf<'tasks_added'>): void {
  for (const task of event.tasks) {
    run.keys.add(task.key, task.digest)
    const episode = newEpisode(run.nextIndex++, task, event.atMs)
    run.live.set(episode.index, episode)
    indexEpisode(run.index, episode)
    if (episode.group !== null) joinGroup(run, episode.group)
  }
  run.totals.tasks += event.tasks.length
}

export function applyGroupCompleted(
  run: Run,
  event: EventOf<'group_completed'>,
  effects: Sink,
): void {
  const group = run.groups.get(event.group)
  if (!group) return
  run.groups.delete(event.group)
  run.index.idleGroups.delete(group)
  effects?.push({ type: 'group_completed', group: group.name, members: group.members })
}

function joinGroup(run: Run, name: string): void {
  const group = run.groups.get(name) ?? { name, members: 0, live: 0, valid: 0 }
  group.members++
  group.live++
  run.groups.set(name, group)
  run.index.idleGroups.delete(group)
}

/** Only `tasks_added` makes one, and a checkpoint that restores it. */
export function newEpisode(index: number, task: TaskInput, atMs: number): Episode {
  return {
    index,
    key: task.key,
    taskJson: task.taskJson,
    taskBlob: task.taskBlob,
    group: task.group ?? null,
    seed: task.seed,
    expectedMs: task.expectedMs ?? 0,
    phase: 'queued',
    phaseAtMs: atMs,
    dueMs: null,
    attempt: 0,
    workersLost: 0,
    spent: { infra: 0, model: 0, timeout: 0, policy: 0 },
    attempts: [],
    current: null,
    orderAt: -1,
    dueAt: -1,
  }
}
