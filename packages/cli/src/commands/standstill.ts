import type { Health, Sandlot } from 'sandlot'
import { note } from '../output/terminal.ts'

/** Says why nothing is begun, where that is no doing of what is looked at. A daemon that doesn't answer is told of by whoever asks it next. */
export async function noteStandstill(client: Pick<Sandlot, 'health'>): Promise<void> {
  const health = await client.health().catch(() => undefined)
  const why = health && standstillOf(health)
  if (why !== undefined) note(why)
}

export function standstillOf({ state, nothingNew }: Health): string | undefined {
  if (state === 'draining') return 'the daemon is draining: it starts nothing more'
  return nothingNew && `no sandbox is begun now: ${nothingNew}`
}
