import { diskMediumOf, type SandboxView } from '@sandlot/protocol'
import type { Ending } from '../node/endings.ts'
import type { Entry } from '../node/entry.ts'
import type { OwnershipRecord } from '../node/ownership.ts'

/** A sandbox that lives, as a caller sees it. */
export function liveView(entry: Entry): SandboxView {
  return {
    ...base(entry.record),
    state: entry.state === 'ended' ? 'stopped' : entry.shownState,
    ...(entry.origin === undefined ? {} : { origin: entry.origin }),
    ...(entry.createMs === undefined ? {} : { createMs: entry.createMs }),
  }
}

/** One that ended, and how. */
export function endedView({ ended, record }: Ending): SandboxView {
  const { cpuMs, memoryBytes, memoryPeakBytes, diskBytes, networkBytes } = ended.usage
  return {
    ...base(record),
    state: 'stopped',
    ending: { kind: ended.kind, detail: ended.detail, atMs: ended.atMs },
    usage: { cpuMs, memoryBytes, memoryPeakBytes, diskBytes, networkBytes },
  }
}

function base(record: OwnershipRecord): Omit<SandboxView, 'state'> {
  const { setup = 'none', agent = 'none', grade = 'none' } = record.network
  const { memory, disk } = record.resources
  const diskMedium = diskMediumOf({ memoryBytes: memory.limit, diskBytes: disk })
  return {
    id: record.sandbox,
    project: record.project,
    image: record.image,
    node: record.node,
    owner: record.owner,
    resources: record.resources,
    diskMedium,
    tags: record.tags,
    env: record.env,
    workdir: record.workdir,
    network: { phase: record.phase, allows: { setup, agent, grade } },
    ...(record.secrets ? { secrets: record.secrets } : {}),
    createdAtMs: record.createdAtMs,
    endpoint: record.endpoint,
    ...(record.checkpointable ? { checkpointable: true } : {}),
    ...(record.parent === undefined ? {} : { parent: record.parent }),
  }
}
