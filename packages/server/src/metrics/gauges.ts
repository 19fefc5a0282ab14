import { SANDBOX_STATES, SERVING_STATES } from '@sandlot/protocol'
import { Gauge, type Registry } from 'prom-client'
import type { CoordinatorPort } from '../coordinator/port.ts'
import type { Queues } from '../functions/queues.ts'
import type { DiskWatch } from '../node/disk-watch.ts'
import type { Node } from '../node/node.ts'
import { overcommit } from '../node/overcommit.ts'
import type { PoolNumbers } from '../node/pool/numbers.ts'
import type { Serving } from '../serving.ts'

export interface Watched {
  readonly node: Node
  readonly coordinator: CoordinatorPort
  readonly queues: Pick<Queues, 'numbers'>
  readonly serving: Serving
  readonly disk: Pick<DiskWatch, 'freeBytes' | 'leastBytes' | 'isLow'>
  readonly sockets: () => number
}

/** Values that are looked at when somebody asks; each look is cheap. */
export function watch(registry: Registry, watched: Watched): void {
  const { node, coordinator, queues, serving, disk, sockets } = watched
  const gauge = (name: string, help: string, look: () => number) =>
    new Gauge({
      name: `sandlot_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(look())
      },
    })
  const gauges = (name: string, help: string, label: string, look: () => Numbers) =>
    new Gauge({
      name: `sandlot_${name}`,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        for (const [value, number] of Object.entries(look())) this.set({ [label]: value }, number)
      },
    })

  gauges('serving', 'State of the daemon: 1 for the one it is in', 'state', () =>
    Object.fromEntries(SERVING_STATES.map((state) => [state, Number(state === serving.state)])),
  )
  gauge('work_under_way', 'Commands and other work that a drain waits for', () => serving.underWay)
  gauges('disk_bytes', 'Free space on the disk of the data directory, and the least', 'of', () => ({
    free: disk.freeBytes,
    least: disk.leastBytes,
  }))
  gauge('disk_low', 'Whether nothing new is admitted because the disk is nearly full', () =>
    Number(disk.isLow),
  )
  gauge('sockets', 'WebSockets that are open', sockets)

  gauges('sandboxes', 'Sandboxes of this node', 'state', () => sandboxStates(node))
  gauges('room_used', 'Room taken by requests of sandboxes', 'of', () => {
    const { limits: _, ...requests } = node.room.used
    return requests
  })
  watchPromises(gauge, gauges, node)
  gauges('room_size', 'Room there is', 'of', () => {
    const { cpus, memoryBytes, sandboxes } = node.room.size
    return { cpus, memoryBytes, sandboxes, diskBytes: node.room.disk.bytes }
  })
  gauge('room_waiting', 'Requests that wait for room', () => node.room.waiting)
  gauges('gpus', 'GPUs of the machine, as last looked at', 'state', () => {
    const held = node.room.gpus.all.filter((gpu) => gpu.held).length
    return { held, free: node.room.gpus.all.length - held, waiting: node.room.gpus.waiting }
  })
  gauges('creations', 'Sandboxes being started', 'state', () => ({
    underWay: node.creations.underWay,
    waiting: node.creations.waiting,
    max: node.creations.max,
  }))
  watchPool(gauges, node)
  watchRuns(gauge, gauges, coordinator)
  gauge(
    'queues',
    'Task queues, those of functions that are called included',
    () => queues.numbers().queues,
  )
  gauge(
    'queue_inputs',
    'Inputs that containers of functions work on',
    () => queues.numbers().running,
  )
  gauges('queue_containers', 'Containers of functions', 'state', () => ({
    ...queues.numbers().containers,
  }))
  gauge(
    'queues_troubled',
    'Queues whose containers do not come up',
    () => queues.numbers().troubled,
  )
}

type Numbers = Readonly<Record<string, number>>

/** What the machine has, and what is promised and allowed of it. */
function watchPromises(
  gauge: (name: string, help: string, look: () => number) => unknown,
  gauges: (name: string, help: string, label: string, look: () => Numbers) => unknown,
  node: Node,
): void {
  gauges('room_limits', 'Limits of all sandboxes together', 'of', () => {
    return { ...node.room.used.limits }
  })
  gauges('overcommit', 'Limits of all sandboxes together, in machines', 'of', () => {
    return { ...overcommit(node.room) }
  })
  gauges(
    'memory_bytes',
    'Memory of the machine: in all, free, promised and not used yet, and the least that is kept free',
    'of',
    () => {
      const { totalBytes, availableBytes, unusedBytes, leastBytes } = node.room.memory
      return { total: totalBytes, free: availableBytes, unused: unusedBytes, least: leastBytes }
    },
  )
  gauge('memory_low', 'Whether no sandbox is begun because the machine has no memory left', () =>
    Number(node.room.memory.isLow),
  )
}

function watchPool(
  gauges: (name: string, help: string, label: string, look: () => Numbers) => unknown,
  node: Node,
): void {
  const levels = ({ ready, starting, target }: PoolNumbers) => ({ ready, starting, target })
  const takes = ({ hits, misses, failures }: PoolNumbers) => {
    return { hit: hits, miss: misses, failed: failures }
  }
  gauges('pool_blanks', 'Blanks of the pool', 'state', () => levels(node.pool.numbers))
  gauges('pool_takes', 'Blanks taken, times none was there, and blanks that failed', 'how', () =>
    takes(node.pool.numbers),
  )
  gauges('pool_copies', 'Copies of saved memory that are restored ahead of need', 'state', () =>
    levels(node.pool.copies),
  )
  gauges(
    'pool_copy_takes',
    'Copies taken, times none was there, and copies that failed',
    'how',
    () => takes(node.pool.copies),
  )
  gauges('pool_bytes', 'Memory that the pool takes, and at the most may take', 'of', () => ({
    ...node.pool.bytes,
  }))
}

function watchRuns(
  gauge: (name: string, help: string, look: () => number) => unknown,
  gauges: (name: string, help: string, label: string, look: () => Numbers) => unknown,
  coordinator: CoordinatorPort,
): void {
  const numbers = () => coordinator.numbers()
  gauges('runs', 'Runs', 'state', () => ({ ...numbers().runs }))
  gauges('episodes', 'Episodes of unfinished runs, and done since the start', 'state', () => ({
    ...numbers().episodes,
  }))
  gauge('workers', 'Workers that are attached', () => numbers().workers)
  gauge('leases', 'Leases that workers hold', () => numbers().leases)
  gauge('inputs_waiting', 'Inputs that wait to be decided on', () => numbers().inputsWaiting)
  gauge('batches_in_flight', 'Batches that wait to be durable', () => numbers().batchesInFlight)
}

function sandboxStates(node: Node): Numbers {
  const states: Record<string, number> = Object.fromEntries(
    SANDBOX_STATES.filter((state) => state !== 'stopped').map((state) => [state, 0]),
  )
  for (const { shownState } of node.sandboxes.entries.values()) {
    states[shownState] = (states[shownState] ?? 0) + 1
  }
  return states
}
