import type { Clock, Engine } from '@sandlot/engine'
import type { Logger } from 'pino'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { aliveSinceMs } from '../node/alive-since.ts'
import type { Ending } from '../node/endings.ts'
import { BUILD, CLIENT, FUNCTION } from '../node/owners.ts'
import type { OwnershipRecord } from '../node/ownership.ts'
import { Ledger } from './ledger.ts'
import { type Allocated, allocatedOver, type MeteredStretch } from './metered.ts'
import { microsOf, type PriceTable } from './prices.ts'

/** What a sandbox came to. */
export interface MeteredTime {
  readonly ms: number
  /** Whole millionths of the currency; null: there is no price table. */
  readonly micros: number | null
}

interface Used {
  readonly cpuMs: number
  readonly networkBytes: number
}

const ALIVE = 'usage-alive'

/**
 * Meters this node's sandboxes: each stretch of a life, from an open world to its end or its pause, is one record of the ledger. The
 * durable record of a sandbox says since when its stretch goes on, so that whoever comes after a killed daemon meters it whole.
 */
export class Meter {
  readonly ledger: Ledger
  readonly prices: PriceTable | null
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #log: Logger
  /** When an earlier daemon was last known to be there. */
  #aliveMs: number | undefined

  private constructor(options: MeterOptions, aliveMs: number | undefined) {
    this.prices = options.prices
    this.ledger = new Ledger(options.engine, options.clock, { retainMs: options.retainMs })
    this.#engine = options.engine
    this.#clock = options.clock
    this.#log = options.log
    this.#aliveMs = aliveMs
  }

  static async open(options: MeterOptions): Promise<Meter> {
    const entry = await options.engine.kv.get(ALIVE)
    const alive = entry && Number(decodeJson(entry.value))
    return new Meter(options, alive !== undefined && Number.isFinite(alive) ? alive : undefined)
  }

  /** What it has come to by now. */
  timeOf(record: OwnershipRecord, toMs: number): MeteredTime {
    const { meteredFromMs = toMs, resources } = record
    return this.#priced(allocatedOver(resources, Math.max(0, toMs - meteredFromMs)))
  }

  /** The stretch of a sandbox that is over: it is paused, or was found dead. Resolves once that is durable. */
  async over(record: OwnershipRecord, toMs: number, used: Used): Promise<void> {
    const stretch = this.stretchOf(record, toMs, used)
    if (stretch) await this.ledger.record(stretch)
  }

  /**
   * The stretch of a sandbox that has ended, or did by what is remembered of its end. The ending that its node keeps has all of it for a
   * while, so that nobody has to wait for the ledger: a daemon tells it again of every ending that it finds.
   */
  ended({ ended, record }: Ending): void {
    const { meteredFromMs: fromMs } = record
    if (fromMs === undefined || ended.metered === undefined) return
    const stretch = this.stretchOf(record, fromMs + ended.metered.ms, ended.usage)
    if (!stretch) return
    this.ledger.recordSoon({ ...stretch, micros: ended.metered.micros }, (err) =>
      this.#log.error(
        { err, stretch },
        'what a sandbox took is not recorded before the next start',
      ),
    )
  }

  /** The stretch that goes on, as if it were over now; undefined where none does. */
  stretchOf(record: OwnershipRecord, toMs: number, used: Used): MeteredStretch | undefined {
    const { meteredFromMs: fromMs, sandbox, project, owner, resources, pausedMs } = record
    if (fromMs === undefined) return undefined
    const allocated = allocatedOver(resources, Math.max(0, toMs - fromMs))
    return {
      key: `${sandbox}/${fromMs}`,
      ...{ fromMs, toMs: Math.max(fromMs, toMs), project, ...purposeOf(owner) },
      sandboxes: pausedMs === undefined ? 1 : 0,
      ...allocated,
      usedCpuMs: Math.round(used.cpuMs),
      networkBytes: used.networkBytes,
      micros: this.#priced(allocated).micros,
    }
  }

  /** A sandbox that was found dead: how long it lived is known up to when its daemon was last there. */
  async foundDead(record: OwnershipRecord, used: Used): Promise<MeteredTime> {
    const seenMs = record.pausedAtMs ?? this.#aliveMs ?? record.meteredFromMs ?? 0
    const toMs = Math.min(this.#clock.now(), Math.max(record.meteredFromMs ?? 0, seenMs))
    await this.over(record, toMs, used)
    return this.timeOf(record, toMs)
  }

  /**
   * Since when a sandbox that was found alive is metered. Where that was not written down yet, it was opened less than a beat before its
   * daemon was killed, and that less than a beat after it was last known to be there.
   */
  adoptedFromMs({ meteredFromMs, createdAtMs }: OwnershipRecord): number {
    const nowMs = this.#clock.now()
    if (meteredFromMs !== undefined) return aliveSinceMs(meteredFromMs, this.#clock)
    const latestMs = (this.#aliveMs ?? nowMs) + SERVER_LIMITS.meterEveryMs
    return Math.min(nowMs, Math.max(createdAtMs, latestMs))
  }

  /** The daemon is there, and sandboxes live. */
  async alive(): Promise<void> {
    await this.#engine.kv.put(ALIVE, encodeJson(this.#clock.now()))
  }

  #priced(allocated: Allocated): MeteredTime {
    return { ms: allocated.ms, micros: this.prices && microsOf(this.prices, allocated) }
  }
}

export interface MeterOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly log: Logger
  readonly prices: PriceTable | null
  /** How long usage is told of. Default: `SERVER_LIMITS.usageMs`. */
  readonly retainMs?: number | undefined
}

/** An attempt is named `run/key/attempt`; its key may have slashes. */
function purposeOf(owner: string): Pick<MeteredStretch, 'kind' | 'run' | 'retry'> {
  if (owner === CLIENT) return { kind: 'sandbox', run: null, retry: false }
  if (owner === BUILD) return { kind: 'build', run: null, retry: false }
  if (owner === FUNCTION) return { kind: 'function', run: null, retry: false }
  const run = owner.slice(0, owner.indexOf('/'))
  const attempt = Number(owner.slice(owner.lastIndexOf('/') + 1))
  return { kind: 'episode', run, retry: attempt > 1 }
}
