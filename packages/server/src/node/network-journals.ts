import type { Engine } from '@sandlot/engine'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { NetworkJournal, type SavedJournal, savedJournal } from './network-journal.ts'

const PREFIX = 'network-log/'

/**
 * Logs of connections on disk: `kv network-log/<sandbox>`, the latest lines of each. Of one that lives it is written now and then; of
 * one that ended it is there as long as its ending.
 */
export class NetworkJournals {
  readonly #kv: Engine['kv']
  /** `next` of what was written last. */
  readonly #written = new Map<string, number>()

  constructor({ kv }: Pick<Engine, 'kv'>) {
    this.#kv = kv
  }

  /** As an earlier daemon left it, or a new one. */
  async open(sandbox: string, now: () => number): Promise<NetworkJournal> {
    const saved = await this.#find(sandbox)
    return new NetworkJournal(now, saved)
  }

  /** Of one that has ended; an empty one where nothing is kept. */
  async ended(sandbox: string): Promise<NetworkJournal> {
    const journal = await this.open(sandbox, () => 0)
    journal.end()
    return journal
  }

  /** Where it has changed since. */
  async keep(sandbox: string, journal: NetworkJournal): Promise<void> {
    await this.#save(sandbox, journal, SERVER_LIMITS.journalMs)
  }

  /** For the last time. */
  async finish(sandbox: string, journal: NetworkJournal): Promise<void> {
    journal.end()
    this.#written.delete(sandbox)
    await this.#save(sandbox, journal, SERVER_LIMITS.endingMs)
    this.#written.delete(sandbox)
  }

  async #save(sandbox: string, journal: NetworkJournal, ttlMs: number): Promise<void> {
    if (journal.next === (this.#written.get(sandbox) ?? 1)) return
    const saved = journal.saved()
    await this.#kv.put(PREFIX + sandbox, encodeJson(saved), { ttlMs })
    this.#written.set(sandbox, saved.next)
  }

  async #find(sandbox: string): Promise<SavedJournal | undefined> {
    const found = await this.#kv.get(PREFIX + sandbox)
    return found && savedJournal.parse(decodeJson(found.value))
  }
}
