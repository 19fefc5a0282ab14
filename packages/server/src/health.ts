import { availableParallelism } from 'node:os'
import type { Health } from '@sandlot/protocol'
import type { Handlers } from './http/call.ts'
import type { DiskWatch } from './node/disk-watch.ts'
import { overcommit } from './node/overcommit.ts'
import type { Room } from './node/room.ts'
import type { Serving } from './serving.ts'
import { VERSION } from './version.ts'

/** `GET /healthz`: answered in every state. */
export function healthHandler(
  serving: Serving,
  disk: Pick<DiskWatch, 'why'>,
  room: Pick<Room, 'used' | 'memory'>,
): Pick<Handlers, 'health'> {
  return {
    health: async () => {
      const nothingNew = disk.why ?? room.memory.why
      return {
        ok: serving.state === 'serving',
        version: VERSION,
        state: serving.state,
        ...(nothingNew === undefined ? {} : { nothingNew }),
        ...(serving.state === 'starting' ? {} : { load: loadOf(room) }),
      }
    },
  }
}

function loadOf(room: Pick<Room, 'used' | 'memory'>): NonNullable<Health['load']> {
  const { used, memory } = room
  return {
    sandboxes: used.sandboxes,
    cpu: { total: availableParallelism(), requests: used.cpus, limits: used.limits.cpus },
    memory: {
      ...{ total: memory.totalBytes, free: memory.availableBytes, kept: memory.leastBytes },
      ...{ requests: used.memoryBytes, limits: used.limits.memoryBytes },
    },
    overcommit: overcommit(room),
  }
}
