import { EngineError } from '@sandlot/engine'

/** Whether the same call may succeed a moment later: the disk is full, or too much waits for it. */
export function isTransient(error: unknown): boolean {
  return error instanceof EngineError && error.retry
}
