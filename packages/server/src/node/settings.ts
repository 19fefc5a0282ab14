import type { DaemonOptions } from '../config.ts'
import type { NodeOptions } from './node.ts'

/** What a daemon is told of its node. */
export function nodeSettings(
  options: DaemonOptions,
): Pick<NodeOptions, 'node' | 'room' | 'pool' | 'creationsMax' | 'memoryFreeBytes'> {
  const { node, cpus, memoryBytes, sandboxesMax: sandboxes, creationsMax } = options
  const { memoryFreeBytes } = options
  const pool = { min: options.poolTarget, max: options.poolMax, idleMs: options.poolIdleMs }
  return { node, creationsMax, memoryFreeBytes, pool, room: { cpus, memoryBytes, sandboxes } }
}
