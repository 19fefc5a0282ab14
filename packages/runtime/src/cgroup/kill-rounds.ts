import type { ControlFiles } from './files.ts'
import { poll } from './files.ts'
import { codeOf } from './io.ts'

/**
 * SIGKILL to all that a file of pids lists, until it lists none. The sentry is PID 1 of its stubs' namespace, so the first round ends
 * nearly all; forks race, hence rounds.
 */
export function killInRounds(
  files: ControlFiles,
  procs: string,
  timeoutMs: number,
): Promise<boolean> {
  return poll(timeoutMs, () => {
    const pids = files.pids(procs)
    for (const pid of pids) sendKill(pid)
    return pids.length === 0
  })
}

function sendKill(pid: number): void {
  // 0 stands for a process outside this daemon's pid namespace, and would mean our own group.
  if (pid <= 0) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}
