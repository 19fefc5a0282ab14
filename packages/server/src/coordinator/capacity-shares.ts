import type { Resources } from '@sandlot/protocol'
import type { NodeCapacity } from '../node/port.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { LiveRun } from './live-run.ts'
import type { Registry } from './registry.ts'
import type { CoordinatorServices } from './services.ts'

/** Divides a node's room among the runs, so that one does not make another's creations wait until they fail. */
export interface CapacityShares {
  /** Asks the node and grants each run its share; from then on by itself, from time to time. */
  start(): Promise<void>
  /** A run has come or gone. */
  changed(): Promise<void>
  /** Grants nothing from now on: nothing more is admitted. */
  close(): void
}

export function openCapacityShares(
  services: CoordinatorServices,
  registry: Registry,
): CapacityShares {
  const { node, clock, signal, warn } = services
  let closed = false
  let granting: Promise<void> | undefined
  let cancel = () => {}

  /** One at a time; whoever asks meanwhile gets the next. */
  function grant(): Promise<void> {
    const next = (granting ?? Promise.resolve()).then(grantAll).catch((error: unknown) => {
      if (!signal.aborted) warn('could not ask the node for its capacity', error)
    })
    granting = next
    return next
  }

  function grantFromTimeToTime() {
    if (closed || signal.aborted) return
    cancel = clock.after(COORDINATOR_LIMITS.capacityEveryMs, () => {
      void grant().then(grantFromTimeToTime)
    })
  }

  async function grantAll() {
    const runs = [...registry.all()]
    const asked = new Map<string, Promise<NodeCapacity>>()
    const capacityOf = (resources: Resources) => {
      const key = JSON.stringify(resources)
      const capacity = asked.get(key) ?? node.capacity(resources)
      asked.set(key, capacity)
      return capacity
    }
    const needs: Need[] = []
    for (const live of runs) {
      const capacity = await capacityOf(live.starts.largest)
      needs.push({ live, capacity, held: live.actor.run.index.slots.size, wanted: wantedBy(live) })
    }
    if (closed || signal.aborted) return
    for (const { need, sandboxes } of sharesOf(needs)) {
      const { live, capacity } = need
      post(live, capacity.node, sandboxes, capacity.creating)
    }
  }

  function post(live: LiveRun, name: string, sandboxes: number, creating: number) {
    live.actor.post({ type: 'node_capacity', node: name, sandboxes, creating })
  }

  return {
    async start() {
      await grant()
      grantFromTimeToTime()
    },
    changed: grant,
    close() {
      closed = true
      cancel()
      for (const live of registry.all()) post(live, node.node, 0, 0)
    },
  }
}

interface Need {
  readonly live: LiveRun
  readonly capacity: NodeCapacity
  readonly held: number
  readonly wanted: number
}

function wantedBy({ actor }: LiveRun): number {
  const { live, index, policy } = actor.run
  return Math.max(index.slots.size, Math.min(policy.concurrency, live.size))
}

/**
 * Max-min: everybody gets what he wants up to an equal part; what one doesn't want is for the others. Sandboxes differ in size, so
 * parts are counted in shares of the node: a run's sandbox takes `1 / capacity`.
 */
export function sharesOf<T extends Pick<Need, 'capacity' | 'held' | 'wanted'>>(
  needs: readonly T[],
): { need: T; sandboxes: number }[] {
  const size = ({ capacity }: T) => 1 / Math.max(1, capacity.sandboxes)
  const held = needs.reduce((sum, need) => sum + need.held * size(need), 0)
  const free = Math.min(1, ...needs.map((need) => need.capacity.free * size(need)))
  let left = Math.min(1, held + free)
  const shares: { need: T; share: number }[] = []
  const smallestFirst = [...needs].sort((a, b) => a.wanted * size(a) - b.wanted * size(b))
  for (const [index, need] of smallestFirst.entries()) {
    const part = left / (smallestFirst.length - index)
    const share = Math.min(part, need.wanted * size(need))
    left -= share
    shares.push({ need, share })
  }
  // What nobody wants now is granted to everybody: whoever wants it first has it until the next division.
  return shares.map(({ need, share }) => ({
    need,
    // Rounded, because 3 × (1 / 3) must be 1 sandbox and not none; at least one, so that everybody gets on.
    sandboxes: Math.max(1, Math.floor((share + left) / size(need) + 1e-6)),
  }))
}
