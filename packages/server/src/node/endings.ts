import type { Engine } from '@sandlot/engine'
import { FLAGS, SANDBOX_ENDINGS } from '@sandlot/protocol'
import { z } from 'zod'
import { encodeJson } from '../json.ts'
import { kvRecords } from '../kv-records.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { type OwnershipRecord, ownershipRecord } from './ownership.ts'
import type { SandboxEnded } from './port.ts'

const sandboxEnded = z.object({
  sandbox: z.string(),
  node: z.string(),
  project: z.string(),
  owner: z.string(),
  epoch: z.number(),
  image: z.string(),
  kind: z.enum(SANDBOX_ENDINGS),
  asked: z.boolean(),
  detail: z.string(),
  atMs: z.number(),
  flags: z.array(z.enum(FLAGS)),
  gradeOpened: z.boolean().exactOptional(),
  metered: z.object({ ms: z.number(), micros: z.number().nullable() }).exactOptional(),
  usage: z.object({
    cpuMs: z.number(),
    memoryBytes: z.number(),
    memoryPeakBytes: z.number(),
    diskBytes: z.number(),
    networkBytes: z.number().default(0),
  }),
})

export const endingRecord = z.object({
  ended: sandboxEnded,
  record: ownershipRecord,
  traceless: z.boolean().exactOptional(),
})

/** An ending, with what the sandbox was. */
export interface Ending {
  readonly ended: SandboxEnded
  readonly record: OwnershipRecord
  /** Nothing of it was found: whoever asks for it again was never answered, and may have it made. */
  readonly traceless?: boolean
}

export const ENDING_PREFIX = 'ended/'

/**
 * How sandboxes ended: `kv ended/<id>`, for about an hour and a bounded number of them, across restarts. The first ending of a
 * sandbox stays.
 */
export class Endings {
  readonly #engine: Engine
  /** Oldest first. */
  readonly #known = new Map<string, Ending>()

  private constructor(engine: Engine) {
    this.#engine = engine
  }

  static async open(engine: Engine): Promise<Endings> {
    const endings = new Endings(engine)
    const found = await Array.fromAsync(kvRecords(engine.kv, ENDING_PREFIX, endingRecord))
    for (const ending of found.sort((a, b) => a.ended.atMs - b.ended.atMs)) {
      endings.#known.set(ending.ended.sandbox, ending)
    }
    return endings
  }

  /** Keeps an ending; the first of a sandbox stays. */
  async record(ending: Ending): Promise<void> {
    const { sandbox } = ending.ended
    if (this.#known.has(sandbox)) return
    this.#known.set(sandbox, ending)
    await this.#engine.kv.put(ENDING_PREFIX + sandbox, encodeJson(ending), {
      ttlMs: SERVER_LIMITS.endingMs,
    })
    await this.#forgetOldest()
  }

  /** It is being made after all. */
  async forget(sandbox: string): Promise<void> {
    if (!this.#known.delete(sandbox)) return
    await this.#engine.kv.delete(ENDING_PREFIX + sandbox)
  }

  find(sandbox: string, nowMs: number): Ending | undefined {
    const ending = this.#known.get(sandbox)
    if (ending && isOver(ending, nowMs)) {
      this.#known.delete(sandbox)
      return undefined
    }
    return ending
  }

  /** Latest first. */
  list(nowMs: number): Ending[] {
    return [...this.#known.values()].filter((ending) => !isOver(ending, nowMs)).reverse()
  }

  async #forgetOldest(): Promise<void> {
    while (this.#known.size > SERVER_LIMITS.endings) {
      const oldest = this.#known.keys().next().value as string
      this.#known.delete(oldest)
      await this.#engine.kv.delete(ENDING_PREFIX + oldest)
    }
  }
}

function isOver({ ended }: Ending, nowMs: number): boolean {
  return ended.atMs + SERVER_LIMITS.endingMs < nowMs
}
