import { SandlotError } from '@sandlot/protocol'
import type { Entry } from './entry.ts'

/** @throws SandlotError `lease_lost` for a request of an older owner */
export function checkEpoch(entry: Entry, epoch: number): void {
  if (epoch < entry.record.epoch) {
    throw new SandlotError(
      'lease_lost',
      `the sandbox ${entry.id} has a younger owner (epoch ${entry.record.epoch}, not ${epoch})`,
    )
  }
}
