import { createHash, timingSafeEqual } from 'node:crypto'
import type { Engine } from '@sandlot/engine'
import { newId, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'

/** What a key allows: `read` looks, `run` also starts and stops, `admin` also removes what others use. Each includes the ones before. */
export const SCOPES = ['read', 'run', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** Who asks: a project and what its key allows. */
export interface Caller {
  /** Id of the key. */
  readonly key: string
  readonly project: string
  readonly scope: Scope
}

const keyRecord = z.object({
  id: z.string(),
  project: z.string(),
  scope: z.enum(SCOPES),
  createdAtMs: z.number(),
})
type KeyRecord = z.infer<typeof keyRecord>

const PREFIX = 'key/'
const LOCAL_ID = 'local'

/**
 * The keys that are accepted. Stored are hashes alone (`kv key/<sha256>`), so that whoever reads the data directory's database
 * can't use them.
 */
export class KeyRing {
  readonly #keys = new Map<string, { readonly hash: Buffer; readonly record: KeyRecord }>()

  /** Loads the keys and sees to it that `localKey` is one of them, with scope `admin` in project `default`. */
  static async open(engine: Engine, localKey: string, nowMs: number): Promise<KeyRing> {
    const ring = new KeyRing()
    const { entries } = await engine.kv.list(PREFIX, { limit: SERVER_LIMITS.keys })
    const local = hashOf(localKey).toString('hex')
    for (const entry of entries) {
      const record = keyRecord.parse(decodeJson(entry.value))
      const hash = entry.key.slice(PREFIX.length)
      if (record.id === LOCAL_ID && hash !== local) await engine.kv.delete(entry.key)
      else ring.#add(hash, record)
    }
    if (!ring.#keys.has(local)) {
      const record: KeyRecord = {
        id: LOCAL_ID,
        project: 'default',
        scope: 'admin',
        createdAtMs: nowMs,
      }
      await engine.kv.put(PREFIX + local, encodeJson(record))
      ring.#add(local, record)
    }
    return ring
  }

  /** Makes a key; its text is shown this once. */
  async create(
    engine: Engine,
    options: { readonly project: string; readonly scope: Scope; readonly nowMs: number },
  ): Promise<{ readonly id: string; readonly key: string }> {
    if (this.#keys.size >= SERVER_LIMITS.keys) {
      throw new SandlotError('invalid_request', `there are ${SERVER_LIMITS.keys} keys already`)
    }
    const key = newKey()
    const record = {
      id: newId('key'),
      project: options.project,
      scope: options.scope,
      createdAtMs: options.nowMs,
    }
    const hash = hashOf(key).toString('hex')
    await engine.kv.put(PREFIX + hash, encodeJson(record))
    this.#add(hash, record)
    return { id: record.id, key }
  }

  /**
   * Who presents this `authorization` header.
   * @throws SandlotError `unauthorized`
   */
  authenticate(authorization: string | undefined): Caller {
    if (authorization === undefined) throw new SandlotError('unauthorized', 'no key was sent')
    const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
    if (token === undefined) {
      throw new SandlotError('unauthorized', 'the authorization header is not “Bearer KEY”')
    }
    const hash = hashOf(token)
    const found = this.#keys.get(hash.toString('hex'))
    if (!found || !timingSafeEqual(found.hash, hash)) {
      throw new SandlotError('unauthorized', 'the key is not known here')
    }
    const { id, project, scope } = found.record
    return { key: id, project, scope }
  }

  #add(hash: string, record: KeyRecord): void {
    this.#keys.set(hash, { hash: Buffer.from(hash, 'hex'), record })
  }
}

/** @throws SandlotError `forbidden` */
export function requireScope(caller: Caller, scope: Scope): void {
  if (SCOPES.indexOf(caller.scope) < SCOPES.indexOf(scope)) {
    throw new SandlotError(
      'forbidden',
      `this needs a key of scope ${scope}, yours is ${caller.scope}`,
    )
  }
}

/** A fresh key: 256 bits of randomness. */
export function newKey(): string {
  return `sk_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}`
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
