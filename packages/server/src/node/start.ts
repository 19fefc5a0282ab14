import {
  DriverError,
  NETWORK_LIMITS,
  type RuntimeDriver,
  type Sandbox,
  type SandboxSpec,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Creations } from './creations.ts'
import { hasNetwork } from './networks.ts'
import type { OwnershipRecord } from './ownership.ts'
import type { BlankPool } from './pool.ts'

export interface Started {
  readonly sandbox: Sandbox
  readonly origin: 'pool' | 'cold'
}

/** Starts sandboxes: from the pool where it has a blank, else cold. */
export interface Starter {
  readonly driver: RuntimeDriver
  readonly pool: BlankPool
  readonly creations: Creations
  readonly log: Logger
}

export async function startSandbox(
  starter: Starter,
  spec: SandboxSpec,
  aborted: AbortSignal,
): Promise<Started> {
  const signal = AbortSignal.any([aborted, AbortSignal.timeout(SERVER_LIMITS.createMs)])
  const dressed = await fromPool(starter, spec, signal)
  if (dressed) return { sandbox: dressed, origin: 'pool' }
  const sandbox = await starter.creations.run(
    'asked',
    () => starter.driver.create(spec, { signal }),
    signal,
  )
  return { sandbox, origin: 'cold' }
}

/** A blank may have died unnoticed: then a cold start is the second try. */
async function fromPool(
  { driver, pool, log }: Starter,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<Sandbox | undefined> {
  const blank = pool.take()
  if (!blank) return undefined
  try {
    return await driver.checkout(blank, spec, { signal })
  } catch (error) {
    if (signal.aborted || !(error instanceof DriverError)) throw error
    log.warn({ err: error, sandbox: spec.id }, 'a blank could not be dressed')
    return undefined
  }
}

/** What the driver is told of a sandbox. */
export function specOf(record: OwnershipRecord, layers: SandboxSpec['layers']): SandboxSpec {
  const { resources } = record
  return {
    id: record.sandbox,
    layers,
    hostname: record.hostname,
    limits: {
      memoryBytes: resources.memory.limit,
      cpus: resources.cpu.limit,
      pidsMax: resources.pids,
      diskBytes: resources.disk,
      nofileMax: SERVER_LIMITS.nofile,
    },
    detachedMs: record.keepWarmMs ?? SERVER_LIMITS.detachedMs,
    ...(record.lifetimeMs === null ? {} : { lifetimeMs: record.lifetimeMs }),
    ...(hasNetwork(record) ? { relayPort: NETWORK_LIMITS.port } : {}),
  }
}
