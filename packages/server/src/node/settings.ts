import type { Clock, Engine } from '@sandlot/engine'
import type { ImageStore, MachineNetwork, RuntimeDriver } from '@sandlot/runtime'
import type { Logger } from 'pino'
import type { DaemonOptions } from '../config.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { MeterOptions } from '../usage/meter.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { NodeNumbers } from './numbers.ts'
import type { PoolSettings } from './pool/pool.ts'
import type { RoomSize } from './room.ts'
import type { NodeParts } from './sandboxes.ts'

export interface NodeOptions extends Pick<NodeParts, 'inside'> {
  /** Name of this node. */
  readonly node: string
  readonly endpoint: () => string
  readonly engine: Engine
  readonly driver: RuntimeDriver
  readonly images: ImageStore
  readonly clock: Clock
  readonly log: Logger
  readonly room: RoomSize
  readonly pool: PoolSettings
  readonly creationsMax: number
  /** Of the machine's memory, kept free of what is promised. Default 0: a share of it. */
  readonly memoryFreeBytes?: number
  readonly checkpoints: Checkpoints
  /** Default: nothing has a price. */
  readonly prices?: MeterOptions['prices']
  /** How long usage is told of. Default: `SERVER_LIMITS.usageMs`. */
  readonly usageRetainMs?: number
  readonly numbers?: NodeNumbers
  /** Default: there are none. */
  readonly secrets?: Secrets
  /** Default: by this machine's settings. */
  readonly network?: MachineNetwork
  /** A sandbox over this image has ended. */
  readonly onReleased?: NodeParts['onReleased']
}

/** What a daemon is told of its node. */
export function nodeSettings(
  options: DaemonOptions,
): Pick<NodeOptions, 'node' | 'room' | 'pool' | 'creationsMax' | 'memoryFreeBytes'> {
  const { node, cpus, memoryBytes, sandboxesMax: sandboxes, creationsMax } = options
  const { memoryFreeBytes } = options
  const pool = { min: options.poolTarget, max: options.poolMax, idleMs: options.poolIdleMs }
  return { node, creationsMax, memoryFreeBytes, pool, room: { cpus, memoryBytes, sandboxes } }
}
