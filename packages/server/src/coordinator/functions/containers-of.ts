import type { EpisodeFunction } from '@sandlot/protocol'
import { FUNCTION_LIMITS } from '../../functions/limits.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'

/** How many containers run the episodes of a run, and how many of them each works on at once. */
export interface FunctionContainers {
  readonly each: number
  readonly max: number
  readonly idleMs: number
}

export function containersOf(
  given: Pick<EpisodeFunction, 'containers' | 'idle'> & { each: EpisodeFunction['concurrency'] },
  concurrency: number,
): FunctionContainers {
  const each = given.each ?? COORDINATOR_LIMITS.attemptsPerContainer
  const needed = Math.ceil(concurrency / each)
  const max = given.containers ?? Math.min(needed, COORDINATOR_LIMITS.containers)
  return { each, max, idleMs: given.idle ?? FUNCTION_LIMITS.idleMs }
}

/** How many there should be for so many episodes that are not over: pure. */
export function containersWanted(episodes: number, { each, max }: FunctionContainers): number {
  return Math.min(max, Math.ceil(episodes / each))
}
