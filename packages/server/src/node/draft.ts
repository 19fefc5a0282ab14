import type { Clock } from '@sandlot/engine'
import type { OwnershipRecord } from './ownership.ts'
import type { AcquireRequest } from './port.ts'

interface DraftParts {
  readonly node: string
  readonly endpoint: () => string
  readonly clock: Clock
}

/** What is known of a sandbox before its image is read. */
export function draftOf(request: AcquireRequest, parts: DraftParts): OwnershipRecord {
  const { sandbox, project, owner, epoch, image, resources, from, parent } = request
  return {
    sandbox,
    node: parts.node,
    project,
    owner,
    epoch,
    image,
    resources,
    env: { ...request.env },
    workdir: request.workdir ?? '/',
    user: request.user ?? '0',
    tags: { ...request.tags },
    hostname: request.hostname ?? hostnameOf(request),
    keepWarmMs: request.keepWarmMs ?? null,
    lifetimeMs: request.lifetimeMs ?? null,
    network: request.network ?? {},
    phase: request.phase ?? 'agent',
    createdAtMs: parts.clock.now(),
    endpoint: parts.endpoint(),
    ...(request.checkpointable || request.checkpoint !== undefined ? { checkpointable: true } : {}),
    ...(request.secrets === undefined ? {} : { secrets: request.secrets }),
    ...(request.reachesApi ? { reachesApi: true } : {}),
    ...(request.model === undefined ? {} : { model: request.model }),
    ...(from === undefined ? {} : { from }),
    ...(parent === undefined ? {} : { parent }),
  }
}

/** Copies of one memory have names of their own. All others share one, so that a world can be opened before it is known for whom. */
function hostnameOf({ sandbox, checkpoint }: AcquireRequest): string {
  return checkpoint === undefined ? 'sandlot' : sandbox.replace('_', '-')
}
