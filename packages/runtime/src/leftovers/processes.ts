import { basename } from 'node:path'
import { poll } from '../cgroup/files.ts'
import { isHostId } from '../gvisor/paths.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { leavesOf, membersOf } from './cgroup-leaves.ts'
import type { Leftover, LeftoverScope } from './leftover.ts'
import { findProcess, isStill, listProcesses, type ProcessFound } from './process-table.ts'

/** The runtime's own, known by the directory in their command, and all that a sandbox started, known by its cgroup. */
export async function findProcesses(scope: LeftoverScope): Promise<readonly Leftover[]> {
  const { stateDirectory } = scope
  const named = listProcesses().filter(
    (each) => isRuntime(each) && each.command.includes(`${stateDirectory}/`),
  )
  const found = new Map(named.map((each) => [each.pid, leftover(each, hostIdIn(each.command))]))
  for (const leaf of await leavesOf(basename(stateDirectory))) {
    const { hostId } = leaf
    for (const pid of await membersOf(leaf)) {
      const member = found.has(pid) ? undefined : findProcess(pid)
      if (member) found.set(pid, leftover(member, hostId))
    }
  }
  return [...found.values()]
}

/** Host helpers of one process. They end with it. */
export function helpersOf(parentPid: number): readonly Leftover[] {
  const found = listProcesses().filter((each) => each.parentPid === parentPid)
  return found.filter(isHelper).map((each) => leftover(each))
}

/** Those whose daemon is gone: they are whoever's takes in orphans. */
export function orphanHelpers(): readonly Leftover[] {
  const all = new Map(listProcesses().map((each) => [each.pid, each]))
  const orphans = [...all.values()].filter((each) => {
    const parent = all.get(each.parentPid)
    return isHelper(each) && !(parent && /\bnode\b/.test(parent.command))
  })
  return orphans.map((each) => leftover(each))
}

/** By its own name: whoever only reads a log of it has the directory in its command too. */
function isRuntime({ command }: ProcessFound): boolean {
  return basename(command.split(' ')[0] ?? '').startsWith('runsc')
}

function isHelper({ command }: ProcessFound): boolean {
  return basename(command.split(' ')[0] ?? '') === 'sandlot-helper'
}

function leftover(found: ProcessFound, hostId?: string): Leftover {
  const { pid, command } = found
  return {
    kind: 'process',
    what: `${pid}: ${command.slice(0, COMMAND_CHARS)}`,
    ...(hostId === undefined ? {} : { hostId }),
    remove: () => end(found),
  }
}

function end(found: ProcessFound): Promise<boolean> {
  return poll(RUNTIME_LIMITS.killMs, async () => {
    if (!isStill(found)) return true
    try {
      process.kill(found.pid, 'SIGKILL')
    } catch {
      return !isStill(found)
    }
    return false
  })
}

function hostIdIn(command: string): string | undefined {
  const [, hostId = ''] = /\/b\/([^/\s]+)\//.exec(command) ?? []
  return isHostId(hostId) ? hostId : undefined
}

const COMMAND_CHARS = 200
