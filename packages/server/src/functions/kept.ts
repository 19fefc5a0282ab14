import { FUNCTION_LIMITS } from './limits.ts'
import type { QueueRecord } from './records.ts'

/**
 * How long results of a queue stay, in milliseconds. `daemonMs`: what the daemon is set up for where the queue says nothing itself;
 * undefined: nothing. Whoever called a function read its results meanwhile: they never stay for longer than a day without being asked to.
 */
export function keptMs(
  { kind, retainMs }: Pick<QueueRecord, 'kind' | 'retainMs'>,
  daemonMs: number | undefined,
): number {
  if (retainMs !== undefined) return retainMs
  if (kind === 'tasks') return daemonMs ?? FUNCTION_LIMITS.resultsMs
  return Math.min(daemonMs ?? FUNCTION_LIMITS.callResultsMs, FUNCTION_LIMITS.callResultsMs)
}
