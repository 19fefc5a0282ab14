import { COORDINATOR_LIMITS } from './limits.ts'
import type { Registry } from './registry.ts'
import type { CoordinatorServices } from './services.ts'

/**
 * Gives up what runs in every run, and what is being taken out of sandboxes; resolves when that is durable and these are given back, or
 * after the time it may take.
 */
export async function giveUpAll(services: CoordinatorServices, registry: Registry): Promise<void> {
  const { clock, leaves, warn } = services
  const recorded = [...registry.all()].map(
    ({ actor }) =>
      new Promise<void>((resolve) => {
        actor.post({ type: 'give_up', cause: 'the daemon was stopped' }, () => resolve())
      }),
  )
  const late = Promise.withResolvers<void>()
  const cancel = clock.after(COORDINATOR_LIMITS.giveUpMs, () => {
    warn('could not record in time that attempts are given up', undefined)
    late.resolve()
  })
  await Promise.race([Promise.all([...recorded, leaves.hurry()]), late.promise])
  cancel()
}
