import type { Clock } from '@sandlot/engine'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { NetworkJournals } from './network-journals.ts'
import type { Ownership } from './ownership.ts'

interface NetworkBytesParts {
  readonly ownership: Ownership
  readonly journals: NetworkJournals
  readonly clock: Clock
  readonly log: Logger
}

/** Writes down now and then what each sandbox has sent, got and asked for, until disposed: a later daemon goes on from there. */
export function keepNetworkBytes(
  parts: NetworkBytesParts,
  entries: ReadonlyMap<string, Entry>,
): Disposable {
  const { clock } = parts
  let cancel = clock.after(SERVER_LIMITS.networkBytesEveryMs, look)
  let over = false
  function look(): void {
    void writeNetworkBytes(parts, entries).then(() => {
      if (!over) cancel = clock.after(SERVER_LIMITS.networkBytesEveryMs, look)
    })
  }
  return {
    [Symbol.dispose]() {
      over = true
      cancel()
    },
  }
}

/**
 * Of those that changed since they were written down. One that is being ended or saved is written by whoever does that. Never
 * rejects: a number alone is lost.
 */
export async function writeNetworkBytes(
  { ownership, journals, log }: Omit<NetworkBytesParts, 'clock'>,
  entries: ReadonlyMap<string, Entry>,
): Promise<void> {
  for (const entry of [...entries.values()]) {
    const { journal } = entry
    if (journal) {
      await journals.keep(entry.id, journal).catch((err) => {
        log.warn({ err, sandbox: entry.id }, 'the log of a network could not be written down')
      })
    }
    // Not before: its record may have become another one meanwhile, of another phase for one.
    const { counted, record } = entry
    if (entry.state !== 'running' || counted.networkBytes === record.networkBytes) continue
    entry.record = counted
    await ownership.put(counted).catch((err) => {
      log.warn({ err, sandbox: entry.id }, 'what a sandbox sent and got could not be written down')
    })
  }
}
