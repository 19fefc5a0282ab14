import { createHash, type Hash } from 'node:crypto'
import { type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import { toSandlotError } from '../failure.ts'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { type Answer, errorAnswer } from './answer.ts'
import type { Bytes } from './call.ts'

const keptAnswer = z.object({
  /** Of the request that was answered. */
  digest: z.string(),
  status: z.number(),
  body: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
})

/** A request as the digest sees it. */
export interface Keyed {
  readonly project: string
  readonly key: string
  readonly method: string
  /** Path with query. */
  readonly target: string
}

/** Digests what a request says, also while its body streams by. */
export class RequestDigest {
  readonly #hash: Hash
  constructor(request: Keyed) {
    this.#hash = createHash('sha256').update(`${request.method} ${request.target}\n`)
  }

  add(text: string): this {
    this.#hash.update(text)
    return this
  }

  async *pass(bytes: Bytes): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      this.#hash.update(chunk)
      yield chunk
    }
  }

  /** Of what has passed so far. Takes the rest of a body first where it is given. */
  async finish(rest?: Bytes): Promise<string> {
    if (rest) for await (const _ of this.pass(rest));
    return this.#hash.copy().digest('hex')
  }
}

/**
 * The same key with the same request is answered with the first answer; requests that come while the first is under way wait for
 * it. Answers are kept for a quarter of an hour, across restarts. What a retry may change (`retry` errors) is not kept.
 *
 * A request that the daemon's death cut off left no answer, and is done again: so handlers that create take their ids from the
 * key (`idFromKey`). So is one whose answer could not be kept, on a full disk.
 */
export class Idempotency {
  readonly #engine: Engine
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /**
   * `work` does the request and gives its answer or throws, `digest` is that of the whole request once `work` has ended; for a
   * repeated request `digest` is awaited alone.
   */
  async once(request: Keyed, does: KeyedWork): Promise<Answer> {
    const name = kvName(request)
    // Several may have waited for the same one: the first that wakes goes on, the others wait for it.
    for (let first = this.#underWay.get(name); first; first = this.#underWay.get(name)) await first
    const doing = this.#once(name, does)
    this.#underWay.set(
      name,
      doing.catch(() => undefined).finally(() => this.#underWay.delete(name)),
    )
    return await doing
  }

  async #once(name: string, { digest, work, keepsRefusals }: KeyedWork): Promise<Answer> {
    const entry = await this.#engine.kv.get(name)
    if (entry) {
      const kept = keptAnswer.parse(decodeJson(entry.value))
      if ((await digest()) !== kept.digest) throw conflict()
      const headers = { ...kept.headers, 'idempotent-replayed': 'true' }
      return { status: kept.status, body: kept.body, headers }
    }
    try {
      const answer = await work()
      await this.#keep(name, answer, digest)
      return answer
    } catch (error) {
      const refused = toSandlotError(error)
      if (keepsRefusals && !refused.retry && refused.code !== 'cancelled') {
        await this.#keep(name, errorAnswer(refused), digest)
      }
      throw error
    }
  }

  async #keep(
    name: string,
    { status, body, headers }: Answer,
    digest: () => Promise<string>,
  ): Promise<void> {
    if ((body?.length ?? 0) > SERVER_LIMITS.keptAnswerBytes) return
    const kept = { digest: await digest(), status, body, headers }
    const ttlMs = SERVER_LIMITS.idempotencyMs
    await this.#engine.kv.put(name, encodeJson(kept), { ttlMs }).catch((error) => {
      if (!isEngineError(error, 'disk_full')) throw error
    })
  }
}

/** A request that has a key: how it is done, and how it is told from another. */
export interface KeyedWork {
  readonly digest: () => Promise<string>
  readonly work: () => Promise<Answer>
  /** False for a streamed body: one that was refused in its midst has no digest. */
  readonly keepsRefusals: boolean
}

export function conflict(): SandlotError {
  return new SandlotError(
    'idempotency_conflict',
    'this idempotency key was used for another request',
  )
}

function kvName({ project, key }: Keyed): string {
  return `idem/${createHash('sha256').update(`${project}\n${key}`).digest('hex')}`
}
