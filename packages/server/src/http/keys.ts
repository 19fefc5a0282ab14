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
  /** Id of the key, or of the one in whose name a token was signed. */
  readonly key: string
  readonly project: string
  readonly scope: Scope
  /** Only with a sandbox token (`sandbox-token.ts`): the one sandbox that it reaches, and nothing beside. */
  readonly sandbox?: SandboxRight
}

/** A right to one sandbox: its commands and files. It ends with the sandbox, at its time, and with its lease where it has one. */
export interface SandboxRight {
  readonly id: string
  /** The lease under which it was given. */
  readonly lease?: string | undefined
  readonly expiresAtMs: number
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
/** In whose name the daemon itself gives rights; there is no such key. */
export const DAEMON_KEY = 'daemon'

/**
 * The keys that are accepted. Stored are hashes alone (`kv key/<sha256>`), so that whoever reads the data directory's database
 * can't use them.
 */
export class KeyRing {
  readonly #keys = new Map<string, { readonly hash: Buffer; readonly record: KeyRecord }>()
  readonly #ids = new Set<string>()

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
   * Whose key this is.
   * @throws SandlotError `unauthorized`
   */
  callerOf(key: string): Caller {
    const hash = hashOf(key)
    const found = this.#keys.get(hash.toString('hex'))
    if (!found || !timingSafeEqual(found.hash, hash)) {
      throw new SandlotError('unauthorized', 'the key is not known here')
    }
    const { id, project, scope } = found.record
    return { key: id, project, scope }
  }

  /**
   * Whether the key of this id is still good: for what was let in by it, or given in its name.
   * @throws SandlotError `unauthorized`
   */
  check(id: string): void {
    if (id === DAEMON_KEY || this.#ids.has(id)) return
    throw new SandlotError('unauthorized', 'the key behind this was revoked')
  }

  #add(hash: string, record: KeyRecord): void {
    this.#ids.add(record.id)
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
