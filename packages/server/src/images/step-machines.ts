import { availableParallelism } from 'node:os'
import { formatSize, newId, type Resources, SandlotError } from '@sandlot/protocol'
import { ImageError, type OpenStepMachine, type StepMachine } from '@sandlot/runtime'
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
  const resources = buildResources(options.memoryBytes)
  return async ({ image, network }, { signal }) => {
    const node = options.node()
    if (!node) throw new SandlotError('draining', 'the daemon is starting')
    const sandbox = newId('sandbox')
    const release = async () => {
      await node.release({ sandbox, reason: 'its step is over' })
    }
    try {
      await node.acquire(
        {
          sandbox,
          image: image.id,
          resources,
          // No client's: nobody finds it by a list.
          project: '',
          owner: BUILD,
          epoch: 0,
          hostname: 'build',
          network: { agent: network },
          waitMs: SERVER_LIMITS.buildRoomMs,
        },
        { signal },
      )
      const lent = await node.sandboxes.lend(sandbox, { signal })
      const env = node.sandboxes.entries.get(sandbox)?.network?.env ?? {}
      return { ...machineOf(lent, release, resources), env }
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
): Omit<StepMachine, 'env'> {
  return {
    guest: lent.guest,
