import type { LiveRun } from './live-run.ts'
import type { CoordinatorServices } from './services.ts'

/**
 * Tells the node how many sandboxes a run is about to ask for: as many as its episodes may have at once, without those that they have.
 * A hint, for which nothing waits and which may be lost.
 */
export function announce(
  { node, warn }: Pick<CoordinatorServices, 'node' | 'warn'>,
  { record, actor }: LiveRun,
): void {
  const { id, specification } = record
  const { image, resources, memory } = specification
  const { live, index, policy } = actor.run
  const count = Math.max(0, Math.min(policy.concurrency, live.size) - index.slots.size)
  const checkpoint = memory?.checkpoint
  const kind = { image, resources, ...(checkpoint === undefined ? {} : { checkpoint }) }
  node.expect({ name: id, count, ...kind }).catch((error: unknown) => {
    warn(`could not announce the sandboxes of the run ${record.name}`, error)
  })
}
