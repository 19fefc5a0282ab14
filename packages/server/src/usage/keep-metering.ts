import type { Clock } from '@sandlot/engine'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from '../node/entry.ts'
import type { Ownership } from '../node/ownership.ts'
import type { SandboxPool } from '../node/pool/pool.ts'
import type { Meter } from './meter.ts'

const MIB = 2 ** 20

interface Metering {
  readonly meter: Meter
  readonly pool: Pick<SandboxPool, 'numbers' | 'copies' | 'bytes'>
  readonly ownership: Ownership
  readonly entries: ReadonlyMap<string, Entry>
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Every few seconds, until disposed: says that the daemon is there, writes down since when the sandboxes are metered that have lived
 * for so long (most episodes never need that), and meters what waits in the pool. So a kill loses that many seconds at the most.
 */
export function keepMetering(metering: Metering): Disposable {
  const { clock, log, meter } = metering
  const idle = new IdleMeter(metering)
  let over = false
  let day = 0
  let cancel = clock.after(SERVER_LIMITS.meterEveryMs, look)

  async function beat(): Promise<void> {
    await tidyDaily()
    const idleIsMetered = idle.count()
    if (metering.entries.size === 0 && !idleIsMetered) return
    await meter.alive()
    await writeStarts(metering)
    await idle.write()
  }

  /** Also while nothing lives: what is kept goes by its age. */
  async function tidyDaily(): Promise<void> {
    const today = Math.floor(clock.now() / 86_400_000)
    if (today !== day) await meter.ledger.tidy()
    day = today
  }

  function look(): void {
    void beat()
      .catch((err) => log.warn({ err }, 'metering failed, and is tried again'))
      .then(() => {
        if (!over) cancel = clock.after(SERVER_LIMITS.meterEveryMs, look)
      })
  }
  return {
    [Symbol.dispose]() {
      over = true
      cancel()
    },
  }
}

/** Of those that live for longer than a beat. One that is being ended or saved is written by whoever does that. */
async function writeStarts({
  ownership,
  entries,
  clock,
}: Pick<Metering, 'ownership' | 'entries' | 'clock'>): Promise<void> {
  const latestMs = clock.now() - SERVER_LIMITS.meterEveryMs
  for (const entry of [...entries.values()]) {
    const { state, startWritten, record } = entry
    if (state !== 'running' || startWritten || (record.meteredFromMs ?? latestMs) >= latestMs) {
      continue
    }
    entry.startWritten = true
    await ownership.put(record).catch((error) => {
      entry.startWritten = false
      throw error
    })
  }
}

/** What waits in the pool belongs to nobody: a line of its own for the operator. */
class IdleMeter {
  readonly #metering: Metering
  #fromMs: number
  #seenMs: number
  #sandboxMs = 0
  #memoryMibMs = 0

  constructor(metering: Metering) {
    this.#metering = metering
    this.#fromMs = metering.clock.now()
    this.#seenMs = this.#fromMs
  }

  /** True where something waits, or did and is not written yet. */
  count(): boolean {
    const { pool, clock } = this.#metering
    const passedMs = clock.now() - this.#seenMs
    this.#seenMs += passedMs
    this.#sandboxMs += (pool.numbers.ready + pool.copies.ready) * passedMs
    this.#memoryMibMs += (pool.bytes.used / MIB) * passedMs
    return this.#sandboxMs > 0
  }

  async write(): Promise<void> {
    const { meter } = this.#metering
    if (this.#sandboxMs === 0 || this.#seenMs - this.#fromMs < SERVER_LIMITS.idleMeteredMs) return
    await meter.ledger.record({
      ...{ key: `idle/${this.#fromMs}`, fromMs: this.#fromMs, toMs: this.#seenMs },
      ...{ project: '', kind: 'idle', run: null, retry: false, sandboxes: 0 },
      ...{ ms: this.#sandboxMs, cpuMs: 0, memoryMibMs: this.#memoryMibMs, diskMibMs: 0, gpuMs: 0 },
      ...{ usedCpuMs: 0, networkBytes: 0, micros: null },
    })
    this.#fromMs = this.#seenMs
    this.#sandboxMs = 0
    this.#memoryMibMs = 0
  }
}
