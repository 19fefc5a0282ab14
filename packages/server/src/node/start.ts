import { deadline } from '@sandlot/engine'
import { isOpenNetwork, type Resources, type SandboxOrigin } from '@sandlot/protocol'
import {
  type Blank,
  DriverError,
  NETWORK_LIMITS,
  type RuntimeDriver,
  type Sandbox,
  type SandboxLimits,
  type SandboxSpec,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import { defined } from '../defined.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Creations, Turn } from './creations.ts'
import { memoryTransferMs } from './memory-time.ts'
import { hasNetwork } from './networks.ts'
import type { OwnershipRecord } from './ownership.ts'
import type { SandboxPool } from './pool/pool.ts'

export interface Started {
  readonly sandbox: Sandbox
  readonly origin: SandboxOrigin
}

/** Where the memory to start from is. */
export interface SavedMemory {
  readonly path: string
  /** The name of a copy's kind in the pool; undefined: none of it waits there. */
  readonly ahead?: string
  /** What is started where it can't be restored; undefined: nothing. */
  readonly cold?: () => Promise<SandboxSpec>
}

/** Starts sandboxes: from the pool where it has one, else cold or from saved memory. */
export interface Starter {
  readonly driver: RuntimeDriver
  readonly pool: SandboxPool
  readonly creations: Creations
  readonly log: Logger
}

/** How a sandbox is started. */
export interface Starting {
  readonly signal: AbortSignal
  /** How long it may wait for its turn among those that are started. The time to start it begins then. */
  readonly turnMs: number
  readonly memory?: SavedMemory | undefined
}

/** Whoever waits for room waits for a turn in the same time; whoever is refused at once where there is no room waits as long as a start may take. */
export function turnLeftMs(waitMs: number | undefined, waitedMs: number): number {
  return waitMs ? Math.max(0, waitMs - waitedMs) : SERVER_LIMITS.createMs
}

/** @throws SandlotError `capacity` where its turn does not come */
export async function startSandbox(
  starter: Starter,
  spec: SandboxSpec,
  starting: Starting,
): Promise<Started> {
  const { memory } = starting
  if (memory) return await fromMemory(starter, spec, memory, starting)
  const isOfItsOwn = spec.checkpointable || spec.network || spec.gpus
  const blank = isOfItsOwn ? undefined : starter.pool.take(spec)
  const dressed = await checkout(starter, blank, spec, starting)
  if (dressed) return { sandbox: dressed, origin: 'pool' }
  return await startCold(starter, spec, starting)
}

async function startCold(
  { driver, creations }: Starter,
  spec: SandboxSpec,
  { signal: aborted, turnMs }: Starting,
): Promise<Started> {
  const create = async () => {
    using late = deadline(SERVER_LIMITS.createMs, aborted)
    return await driver.create(spec, { signal: late.signal })
  }
  const turn = { signal: aborted, waitMs: turnMs }
  return { sandbox: await creations.run('asked', create, turn), origin: 'cold' }
}

/** From saved memory, in the line of all that are started. */
export async function restoreSandbox(
  { driver, creations }: Starter,
  spec: SandboxSpec,
  checkpoint: string,
  { signal: aborted, waitMs }: Turn,
): Promise<Sandbox> {
  const restore = async () => {
    using late = deadline(restoreMs(spec), aborted)
    return await driver.restore(spec, checkpoint, { signal: late.signal })
  }
  return await creations.run('asked', restore, { signal: aborted, ...defined({ waitMs }) })
}

async function fromMemory(
  starter: Starter,
  spec: SandboxSpec,
  { path, ahead, cold }: SavedMemory,
  starting: Starting,
): Promise<Started> {
  const { layers, limits } = spec
  const copy =
    ahead === undefined ? undefined : starter.pool.takeCopy({ checkpoint: ahead, layers, limits })
  const taken = await checkout(starter, copy, spec, starting)
  if (taken) return { sandbox: taken, origin: 'restored-ahead' }
  const { signal, turnMs } = starting
  try {
    const sandbox = await restoreSandbox(starter, spec, path, { signal, waitMs: turnMs })
    return { sandbox, origin: 'restored' }
  } catch (error) {
    const incompatible = error instanceof DriverError && error.code === 'snapshot_incompatible'
    if (!(cold && incompatible)) throw error
    starter.log.warn({ err: error, sandbox: spec.id }, 'a sandbox starts cold')
    return await startCold(starter, await cold(), starting)
  }
}

/** One that waited may have died unnoticed: then a start of its own is the second try. */
async function checkout(
  { driver, log }: Starter,
  blank: Blank | undefined,
  spec: SandboxSpec,
  { signal: aborted, memory }: Starting,
): Promise<Sandbox | undefined> {
  if (!blank) return undefined
  using late = deadline(memory ? restoreMs(spec) : SERVER_LIMITS.createMs, aborted)
  const { signal } = late
  try {
    return await driver.checkout(blank, spec, { signal })
  } catch (error) {
    if (signal.aborted || !(error instanceof DriverError)) throw error
    log.warn({ err: error, sandbox: spec.id }, 'one that waited could not be taken')
    return undefined
  }
}

function restoreMs({ limits }: SandboxSpec): number {
  return SERVER_LIMITS.createMs + memoryTransferMs(limits)
}

/** What the driver is told of a sandbox. */
export function specOf(record: OwnershipRecord, layers: SandboxSpec['layers']): SandboxSpec {
  return {
    id: record.sandbox,
    layers,
    hostname: record.hostname,
    limits: limitsOf(record.resources),
    cpuShare: record.resources.cpu.request,
    detachedMs: record.keepWarmMs ?? SERVER_LIMITS.detachedMs,
    ...(record.lifetimeMs === null ? {} : { lifetimeMs: record.lifetimeMs }),
    ...(hasNetwork(record) ? { relayPort: NETWORK_LIMITS.port } : {}),
    ...(isOpenNetwork(record.network) ? { network: 'open' } : {}),
    ...(record.checkpointable ? { checkpointable: true } : {}),
  }
}

export function limitsOf({
  memory,
  cpu,
  pids,
  processesPerUser,
  disk,
  openFiles,
  fileSize,
}: Resources): SandboxLimits {
  return {
    memoryBytes: memory.limit,
    cpus: cpu.limit,
    pidsMax: pids,
    diskBytes: disk,
    ...(processesPerUser === undefined ? {} : { userPidsMax: processesPerUser }),
    nofileMax: openFiles ?? SERVER_LIMITS.nofile,
    ...(fileSize === undefined ? {} : { fileBytesMax: fileSize }),
  }
}
