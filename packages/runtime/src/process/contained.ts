import { listProcesses } from '../leftovers/process-table.ts'

/**
 * Arguments of `setpriv`, before a program and its own: it runs as PID 1 of a process and a mount namespace, which end with it, and with
 * this process.
 */
export const CONTAINED: readonly string[] = [
  ...['--pdeathsig', 'KILL', 'unshare'],
  ...['--mount', '--pid', '--fork', '--mount-proc', '--kill-child=KILL'],
]

/**
 * Ends such a program, by what this process started for it. That ends once all in the namespace have ended; killed itself, it would be gone
 * while they still run, and write. False where the program has not begun.
 */
export function killContained(pid: number): boolean {
  const first = listProcesses().find(({ parentPid }) => parentPid === pid)
  if (!first) return false
  try {
    return process.kill(first.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
    return true
  }
}
