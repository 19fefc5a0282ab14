import type { Log } from '@sandlot/engine'
import type { Resources } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from './limits.ts'
import { type RunAddress, startStream } from './streams.ts'

/**
 * What tasks of a run start from beside what the run itself does, and the most that one of them may use. Written down before the
 * tasks are: whatever is deleted meanwhile, what an unfinished run may still start from stays.
 */
export interface OwnStarts {
  /** An image, or saved memory. */
  has(start: string): boolean
  /** Of each resource the most that any task asks for. */
  readonly largest: Resources
  add(starts: readonly OwnStart[]): Promise<void>
}

export interface OwnStart {
  readonly image?: string
  readonly checkpoint?: string
  readonly resources: Resources
}

export async function openOwnStarts(
  log: Log,
  run: RunAddress,
  resources: Resources,
): Promise<OwnStarts> {
  const stream = startStream(run)
  const known = new Set<string>()
  let largest = resources

  for (let after: string | undefined; ; ) {
    const page = await log.read(stream, after === undefined ? {} : { after })
    for (const { bytes } of page) take(JSON.parse(Buffer.from(bytes).toString()) as OwnStart)
    after = page.at(-1)?.position
    if (after === undefined) break
  }

  function take({ image, checkpoint, resources }: OwnStart) {
    if (image !== undefined) known.add(image)
    if (checkpoint !== undefined) known.add(checkpoint)
    largest = larger(largest, resources)
  }

  function isNew({ image, checkpoint, resources }: OwnStart): boolean {
    if (image !== undefined && !known.has(image)) return true
    if (checkpoint !== undefined && !known.has(checkpoint)) return true
    return JSON.stringify(larger(largest, resources)) !== JSON.stringify(largest)
  }

  return {
    has: (start) => known.has(start),
    get largest() {
      return largest
    },
    async add(starts) {
      const fresh: Uint8Array[] = []
      for (const start of starts) {
        if (!isNew(start)) continue
        // Known before it is durable: to whoever wants to delete it, it is in use from now on.
        take(start)
        fresh.push(Buffer.from(JSON.stringify(start)))
      }
      for (let from = 0; from < fresh.length; from += COORDINATOR_LIMITS.ownStartsPerAppend) {
        await log.append(stream, fresh.slice(from, from + COORDINATOR_LIMITS.ownStartsPerAppend))
      }
    },
  }
}

function larger(a: Resources, b: Resources): Resources {
  const most = (left: Resources['cpu'], right: Resources['cpu']) => ({
    request: Math.max(left.request, right.request),
    limit: Math.max(left.limit, right.limit),
  })
  return {
    cpu: most(a.cpu, b.cpu),
    memory: most(a.memory, b.memory),
    disk: Math.max(a.disk, b.disk),
    pids: Math.max(a.pids, b.pids),
    // Nothing of the machine is set aside for these.
    ...(a.processesPerUser === undefined ? {} : { processesPerUser: a.processesPerUser }),
    ...(a.openFiles === undefined ? {} : { openFiles: a.openFiles }),
    ...(a.fileSize === undefined ? {} : { fileSize: a.fileSize }),
  }
}
