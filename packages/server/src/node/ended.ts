import type { Flag } from '@sandlot/protocol'
import type { Fate } from '@sandlot/runtime'
import type { Entry } from './entry.ts'
import type { OwnershipRecord } from './ownership.ts'
import type { ReleaseRequest, SandboxEnded } from './port.ts'

/** The ending of a sandbox that ran. The fate of one that died before it was stopped is its own. */
export function endedOf(
  record: OwnershipRecord,
  how: {
    readonly fate: Fate
    readonly stop?: Entry['stop']
    readonly flags: Iterable<Flag>
    readonly diskBytes: number
    readonly networkBytes?: number
    readonly gradeOpened?: boolean
    readonly cutOff?: boolean
    readonly metered?: SandboxEnded['metered']
    readonly atMs: number
  },
): SandboxEnded {
  const byUs = how.fate.kind === 'stopped' ? how.stop : undefined
  return {
    ...addressOf(record),
    kind: byUs?.kind ?? how.fate.kind,
    asked: byUs?.kind === 'stopped',
    detail: byUs?.detail ?? how.fate.detail,
    atMs: how.atMs,
    flags: [...how.flags],
    ...(how.gradeOpened ? { gradeOpened: true } : {}),
    ...(how.cutOff ? { cutOff: true } : {}),
    ...(how.metered ? { metered: how.metered } : {}),
    usage: {
      ...how.fate.usage,
      // Of one that died alone the host knows what was on its disk.
      diskBytes: Math.max(how.diskBytes, how.fate.usage.diskBytes),
      // What went by an interface of its own the kernel counted, and the rest this daemon.
      networkBytes:
        (how.networkBytes ?? record.networkBytes ?? 0) + (how.fate.usage.networkBytes ?? 0),
    },
  }
}

/** The ending of one that never came up, or of which nothing is left to tell. */
export function neverRan(
  record: OwnershipRecord,
  how: {
    readonly stop: Entry['stop']
    readonly atMs: number
    readonly metered?: SandboxEnded['metered']
  },
): SandboxEnded {
  return {
    ...addressOf(record),
    kind: how.stop?.kind ?? 'lost',
    asked: how.stop?.kind === 'stopped',
    detail: how.stop?.detail ?? 'it did not come up',
    atMs: how.atMs,
    flags: [],
    ...(how.metered ? { metered: how.metered } : {}),
    usage: NO_USAGE,
  }
}

/** The answer for one that nobody remembers. */
export function unheardOf(
  { sandbox, epoch = 0 }: ReleaseRequest,
  { node, atMs }: { readonly node: string; readonly atMs: number },
): SandboxEnded {
  return {
    ...{ sandbox, node, project: '', owner: '', epoch, image: '' },
    ...{ kind: 'stopped', asked: true, detail: 'no such sandbox is known here' },
    ...{ atMs, flags: [], usage: NO_USAGE },
  }
}

export const NO_USAGE = {
  cpuMs: 0,
  memoryBytes: 0,
  memoryPeakBytes: 0,
  diskBytes: 0,
  networkBytes: 0,
} as const

function addressOf({ sandbox, node, project, owner, epoch, image }: OwnershipRecord) {
  return { sandbox, node, project, owner, epoch, image }
}
