import type { DaemonOptions } from '../config.ts'
import type { NodeOptions } from './node.ts'

/** What a daemon is told of its node. */
export function nodeSettings(
  options: DaemonOptions,
): Pick<NodeOptions, 'node' | 'room' | 'pool' | 'creationsMax'> {
  const { node, cpus, memoryBytes, sandboxesMax: sandboxes, creationsMax } = options
  const pool = { min: options.poolTarget, max: options.poolMax, idleMs: options.poolIdleMs }
  return { node, creationsMax, pool, room: { cpus, memoryBytes, sandboxes } }
}
