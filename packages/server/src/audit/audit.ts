/**
 * The record of who did what: one stream of the log for each day, which nobody changes and which goes as a whole when it is old. Entries
 * are written in batches behind the answers: nothing waits for them, and a kill loses those of the last moment.
 */
import type { Clock, Engine } from '@sandlot/engine'
import type { AuditEntry } from '@sandlot/protocol'
import type { Logger } from 'pino'
import { encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { redacted } from '../redact.ts'

export const AUDIT_PREFIX = 'audit/'
export const DAY_MS = 24 * 60 * 60_000

export interface AuditOptions {
  readonly log: Engine['log']
  readonly clock: Clock
  /** The daemon's own log. */
  readonly logger: Logger
}

export class Audit implements AsyncDisposable {
  readonly #options: AuditOptions
  #waiting: AuditEntry[] = []
  #left = 0
  #writing: Promise<void> = Promise.resolve()
  #cancel: (() => void) | undefined
  #tidiedDay = ''

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** Takes an entry; of more than can be written their number is told in the daemon's log. No I/O. */
  add(entry: Omit<AuditEntry, 'atMs'>): void {
    if (this.#waiting.length >= SERVER_LIMITS.auditWaiting) {
      this.#left += 1
      return
    }
    const { clock } = this.#options
    this.#waiting.push({ atMs: clock.now(), ...entry })
    this.#cancel ??= clock.after(SERVER_LIMITS.auditEveryMs, () => {
      this.#cancel = undefined
      void this.flush()
    })
  }

  /** Resolves when all that was added before is durable, or was given up with a word in the daemon's log. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel?.()
    await this.flush()
  }

  async #write(): Promise<void> {
    const { log, logger } = this.#options
    const entries = this.#waiting
    const left = this.#left
    this.#waiting = []
    this.#left = 0
    if (left > 0) logger.warn({ entries: left }, 'more happened at once than the audit could take')
    try {
      for (let at = 0; at < entries.length; at += SERVER_LIMITS.auditBatch) {
        const batch = entries.slice(at, at + SERVER_LIMITS.auditBatch)
        const first = batch[0] as AuditEntry
        await log.append(streamOf(first.atMs), batch.map(bytesOf))
        await this.#tidy(first.atMs)
      }
    } catch (err) {
      logger.error({ err, entries: entries.length }, 'the audit could not be written')
    }
  }

  /** Once a day: what is too old goes. */
  async #tidy(nowMs: number): Promise<void> {
    const day = streamOf(nowMs)
    if (day === this.#tidiedDay) return
    this.#tidiedDay = day
    const { log } = this.#options
    const oldest = streamOf(nowMs - SERVER_LIMITS.auditDays * DAY_MS)
    const { streams } = await log.list(AUDIT_PREFIX)
    for (const { name } of streams) if (name < oldest) await log.delete(name)
  }
}

/** The stream of a day: `audit/2026-11-30`. */
export function streamOf(atMs: number): string {
  return AUDIT_PREFIX + new Date(atMs).toISOString().slice(0, 10)
}

function bytesOf({ targets, ...entry }: AuditEntry): Uint8Array {
  const shown = Object.entries(targets).map(([name, value]) => [
    name,
    redacted(value).slice(0, SERVER_LIMITS.auditTargetLength),
  ])
  return encodeJson({ ...entry, targets: Object.fromEntries(shown) })
}
