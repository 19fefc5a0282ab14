import { SandlotError } from '@sandlot/protocol'
import type { TaskInput } from '../run/input.ts'
import type { Run } from '../run/run.ts'
import { membersMax } from './group.ts'

/** One episode that a task becomes. */
export interface Member {
  readonly key: string
  readonly group: string | null
  readonly member: number
  readonly seed: number
}

/** The episodes that a task becomes: one, or as many as a group has where the task is a prompt. `put`: members that its group has. */
export function membersOf(run: Run, task: TaskInput, put: number): Member[] {
  const rule = run.policy.group
  const { key, seed } = task
  if (rule?.by !== 'prompt') return [{ key, group: task.group ?? null, member: put, seed }]
  return Array.from({ length: membersMax(rule) }, (_, member) => ({
    ...{ key: `${key}#${member}`, group: key, member },
    seed: memberSeed(seed, member),
  }))
}

/** How many episodes so many tasks become. */
export function episodesOf({ policy }: Run, tasks: number): number {
  return policy.group?.by === 'prompt' ? tasks * membersMax(policy.group) : tasks
}

/**
 * Sees to it that each new task has the group that the run wants, and that there is room in it.
 * @throws SandlotError `invalid_request`, or `task_conflict` where a group would get more members than it has.
 */
export function checkMembers(
  run: Run,
  tasks: Iterable<{ readonly key: string; readonly group?: string | undefined }>,
): void {
  const rule = run.policy.group
  if (rule === null) return
  const counts = new Map<string, number>()
  for (const { key, group } of tasks) {
    if (rule.by === 'prompt') {
      if (group !== undefined) throw refused(key, 'names a group', "by: 'name'")
      continue
    }
    if (group === undefined) throw refused(key, 'names no group', "by: 'prompt'")
    const members = (counts.get(group) ?? putInto(run, group)) + 1
    counts.set(group, members)
    if (members > membersMax(rule)) {
      const most = membersMax(rule)
      throw new SandlotError(
        'task_conflict',
        `the group ${shown(group)} has all of its ${most} tasks`,
        {
          hint: 'A group has `size` + `extra` tasks: put the others under other names, or make it larger.',
        },
      )
    }
  }
}

/** Members that a group has had. Of one that is over for good only its name is known: it was full. */
function putInto(run: Run, group: string): number {
  const open = run.groups.get(group)
  if (open) return open.members
  const isOver = run.groupsOver.check(group, '') !== 'new'
  return isOver && run.policy.group ? membersMax(run.policy.group) : 0
}

function refused(key: string, what: string, instead: string): SandlotError {
  return new SandlotError('invalid_request', `the task ${shown(key)} ${what}`, {
    hint: `The run's tasks are grouped otherwise: start one with \`group: { ${instead} }\`.`,
  })
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}

/** Another seed for each member, the same in every run of the same seed: a mix of whole numbers that no two of them share. */
function memberSeed(seed: number, member: number): number {
  let h = (seed + Math.imul(member, 0x9e3779b1)) >>> 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
