import { availableParallelism } from 'node:os'
import { formatSize, newId, type Resources, SandlotError } from '@sandlot/protocol'
import {
  DriverError,
  GuestError,
  GuestLost,
  GuestTimeout,
  ImageError,
  type OpenStepMachine,
  type StepMachine,
} from '@sandlot/runtime'
import { SERVER_LIMITS } from '../limits.ts'
import type { Lent } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { BUILD } from '../node/owners.ts'
import type { SandboxEnded } from '../node/port.ts'

export interface StepMachinesOptions {
  /** Undefined until the daemon has opened it. */
  readonly node: () => Node | undefined
  /** What the daemon gives in all. */
  readonly memoryBytes: number
}

/** Sandboxes of the node for steps of builds: they are admitted, counted and ended as all others. */
export function stepMachines(options: StepMachinesOptions): OpenStepMachine {
  const ofSteps = buildResources(options.memoryBytes)
  return async ({ image, network, client }, { signal }) => {
    const node = options.node()
    if (!node) throw new SandlotError('draining', 'the daemon is starting')
    const sandbox = newId('sandbox')
    const resources = client?.resources ?? ofSteps
    const release = async () => {
      await node.release({ sandbox, reason: 'its step is over' })
    }
    try {
      await node.acquire(
        {
          sandbox,
          image: image.id,
          resources,
          // Without a client nobody finds it by a list.
          project: client?.project ?? '',
          owner: BUILD,
          epoch: 0,
          ...(client ? {} : { hostname: 'build' }),
          network: { agent: network },
          waitMs: SERVER_LIMITS.buildRoomMs,
        },
        { signal },
      )
      const lent = await node.sandboxes.lend(sandbox, { signal })
      const env = node.sandboxes.entries.get(sandbox)?.network?.env ?? {}
      return { ...machineOf(lent, release, resources), sandbox, env }
    } catch (error) {
      await release()
      throw error
    }
  }
}

function machineOf(
  lent: Lent,
  release: () => Promise<void>,
  resources: Resources,
): Omit<StepMachine, 'sandbox' | 'env'> {
  return {
    guest: lent.guest,
    difference: (wait) => lent.guest.tar.difference('main', {}, wait),
    explain: async (error) =>
      isOfSandbox(error) ? meaning(await lent.explain(error), resources) : error,
    [Symbol.asyncDispose]: async () => {
      lent[Symbol.dispose]()
      await release()
    },
  }
}

function isOfSandbox(error: unknown): boolean {
  return [GuestError, GuestLost, GuestTimeout, DriverError].some((kind) => error instanceof kind)
}

/** Much memory is a limit, not a request: a build uses it for a moment, and most need little. */
function buildResources(memoryBytes: number): Resources {
  const limit = Math.min(SERVER_LIMITS.buildMemoryBytes, Math.floor(memoryBytes / 2))
  return {
    cpu: { request: 0.1, limit: availableParallelism() },
    memory: { request: Math.min(limit, 64 * 2 ** 20), limit },
    disk: Math.floor(limit * 0.7),
    pids: SERVER_LIMITS.buildPids,
  }
}

/** A step that takes all memory is at fault itself. */
function meaning(error: SandlotError, { memory }: Resources): unknown {
  const ending = error.details?.ending as SandboxEnded | undefined
  if (ending?.kind !== 'oom_limit') return error
  return new ImageError(
    'image_build_failed',
    `the command and the files that it wrote took more than ${formatSize(memory.limit)} of memory`,
    { hint: 'Let it do less at once, or write less in one step.', cause: error },
  )
}
