import type { Engine } from '@sandlot/engine'
import { FLAGS, SANDBOX_ENDINGS } from '@sandlot/protocol'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
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
  usage: z.object({
    cpuMs: z.number(),
    memoryBytes: z.number(),
    memoryPeakBytes: z.number(),
    diskBytes: z.number(),
  }),
})

const PREFIX = 'ended/'

/**
 * How sandboxes ended: `kv ended/<id>`, for about an hour and a bounded number of them, across restarts. The first ending of a
 * sandbox stays.
 */
export class Endings {
  readonly #engine: Engine
  /** Oldest first. */
  readonly #known = new Map<string, SandboxEnded>()

  private constructor(engine: Engine) {
    this.#engine = engine
  }

  static async open(engine: Engine): Promise<Endings> {
    const endings = new Endings(engine)
    const found: SandboxEnded[] = []
    for (let after: string | undefined; ; ) {
      const page = await engine.kv.list(PREFIX, after === undefined ? {} : { after })
      for (const entry of page.entries) found.push(sandboxEnded.parse(decodeJson(entry.value)))
      after = page.next
      if (after === undefined) break
    }
    for (const ended of found.sort((a, b) => a.atMs - b.atMs)) {
      endings.#known.set(ended.sandbox, ended)
    }
    return endings
  }

  /** Keeps an ending; gives the one that stands. */
  async record(ended: SandboxEnded): Promise<SandboxEnded> {
    const before = this.#known.get(ended.sandbox)
    if (before) return before
    this.#known.set(ended.sandbox, ended)
    await this.#engine.kv.put(PREFIX + ended.sandbox, encodeJson(ended), {
      ttlMs: SERVER_LIMITS.endingMs,
    })
    await this.#forgetOldest()
    return ended
  }

  find(sandbox: string, nowMs: number): SandboxEnded | undefined {
    const ended = this.#known.get(sandbox)
    if (ended && ended.atMs + SERVER_LIMITS.endingMs < nowMs) {
      this.#known.delete(sandbox)
      return undefined
    }
    return ended
  }

  /** Latest first. */
  list(nowMs: number): SandboxEnded[] {
    const fresh = [...this.#known.values()].filter(
      (ended) => ended.atMs + SERVER_LIMITS.endingMs >= nowMs,
    )
    return fresh.reverse()
  }

  async #forgetOldest(): Promise<void> {
    while (this.#known.size > SERVER_LIMITS.endings) {
      const oldest = this.#known.keys().next().value as string
      this.#known.delete(oldest)
      await this.#engine.kv.delete(PREFIX + oldest)
    }
  }
}
