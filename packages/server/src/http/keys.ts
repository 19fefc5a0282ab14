import { createHash, timingSafeEqual } from 'node:crypto'
import type { Engine } from '@sandlot/engine'
import { newId, SandlotError, SCOPES, type Scope } from '@sandlot/protocol'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { SERVER_LIMITS } from '../limits.ts'

/** Who asks: a project and what its key allows. */
export interface Caller {
  /** Id of the key, or of the one in whose name a token was signed. */
  readonly key: string
  readonly project: string
  readonly scope: Scope
  /** The key of this machine: it rules all projects where a key of theirs rules its own. */
  readonly isOperator: boolean
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

export const keyRecord = z.object({
  id: z.string(),
  project: z.string(),
  scope: z.enum(SCOPES),
  createdAtMs: z.number(),
  name: z.string().optional(),
  expiresAtMs: z.number().optional(),
})
export type KeyRecord = z.infer<typeof keyRecord>

interface Kept {
  readonly hash: Buffer
  readonly record: KeyRecord
}

export const KEY_PREFIX = 'key/'
/** The key of this machine, of whoever may read the data directory. */
export const LOCAL_KEY = 'local'
/** In whose name the daemon itself gives rights; there is no such key. */
export const DAEMON_KEY = 'daemon'

/**
 * The keys that are accepted. Stored are hashes alone (`kv key/<sha256>`), so that whoever reads the data directory's database
 * can't use them. All are in memory: asking for one costs a hash.
 */
export class KeyRing {
  readonly #kv: Engine['kv']
  readonly #now: () => number
  readonly #byHash = new Map<string, Kept>()
  readonly #byId = new Map<string, Kept>()

  private constructor(kv: Engine['kv'], now: () => number) {
    this.#kv = kv
    this.#now = now
  }

  /** Loads the keys and sees to it that `localKey` is one of them, with scope `admin` in project `default`. */
  static async open({ kv }: Engine, localKey: string, now: () => number): Promise<KeyRing> {
    const ring = new KeyRing(kv, now)
    const { entries } = await kv.list(KEY_PREFIX, { limit: SERVER_LIMITS.keys })
    const local = hashOf(localKey)
    for (const entry of entries) {
      const record = keyRecord.parse(decodeJson(entry.value))
      const hash = Buffer.from(entry.key.slice(KEY_PREFIX.length), 'hex')
      if (record.id === LOCAL_KEY && !hash.equals(local)) await kv.delete(entry.key)
      else ring.#set({ hash, record })
    }
    if (!ring.#byId.has(LOCAL_KEY)) {
      const createdAtMs = now()
      const record = { id: LOCAL_KEY, project: 'default', scope: 'admin', createdAtMs } as const
      await ring.#put({ hash: local, record })
    }
    return ring
  }

  /**
   * Makes a key; its text is shown this once. `id`: of the same request, if it comes again.
   * @throws SandlotError `invalid_request` when there are too many, `idempotency_conflict` where one of this id was made before
   */
  async create(
    terms: Omit<KeyRecord, 'id' | 'createdAtMs'> & { readonly id?: string },
  ): Promise<{ readonly record: KeyRecord; readonly key: string }> {
    await this.#dropExpired()
    const { id = newId('key'), ...rest } = terms
    if (this.#byId.has(id)) throw shownBefore(id)
    if (this.#byId.size >= SERVER_LIMITS.keys) {
      const message = `there are ${SERVER_LIMITS.keys} keys already`
      throw new SandlotError('invalid_request', message, { hint: 'Revoke those that nobody uses.' })
    }
    const key = newKey()
    const record: KeyRecord = { id, ...rest, createdAtMs: this.#now() }
    await this.#put({ hash: hashOf(key), record })
    return { record, key }
  }

  list(): readonly KeyRecord[] {
    return [...this.#byId.values()].map(({ record }) => record)
  }

  find(id: string): KeyRecord | undefined {
    return this.#byId.get(id)?.record
  }

  /** From now on nobody gets in by it; who is in is out within `rightsEveryMs`. */
  async revoke(id: string): Promise<void> {
    const kept = this.#byId.get(id)
    if (kept === undefined) return
    await this.#kv.delete(KEY_PREFIX + kept.hash.toString('hex'))
    this.#byHash.delete(kept.hash.toString('hex'))
    this.#byId.delete(id)
  }

  /**
   * Whose key this is.
   * @throws SandlotError `unauthorized`
   */
  callerOf(key: string): Caller {
    const hash = hashOf(key)
    const found = this.#byHash.get(hash.toString('hex'))
    if (!found || !timingSafeEqual(found.hash, hash)) {
      throw new SandlotError('unauthorized', 'the key is not known here')
    }
    const { id, project, scope } = found.record
    this.#checkTime(found.record)
    return { key: id, project, scope, isOperator: id === LOCAL_KEY }
  }

  /**
   * Whether the key of this id is still good: for what was let in by it, or given in its name.
   * @throws SandlotError `unauthorized`
   */
  check(id: string): void {
    if (id === DAEMON_KEY) return
    const found = this.#byId.get(id)
    if (!found) throw new SandlotError('unauthorized', 'the key behind this was revoked')
    this.#checkTime(found.record)
  }

  #checkTime({ expiresAtMs }: KeyRecord): void {
    if (expiresAtMs === undefined || expiresAtMs > this.#now()) return
    const at = new Date(expiresAtMs).toISOString()
    throw new SandlotError('unauthorized', `the key expired at ${at}`, {
      hint: 'Ask whoever gave it for a new one: `sandlot keys create`.',
    })
  }

  /** Those that expired stay listed for a while, so that a person sees why theirs is refused. */
  async #dropExpired(): Promise<void> {
    const beforeMs = this.#now() - SERVER_LIMITS.expiredKeyMs
    for (const { id, expiresAtMs = Number.POSITIVE_INFINITY } of this.list()) {
      if (expiresAtMs < beforeMs) await this.revoke(id)
    }
  }

  async #put(kept: Kept): Promise<void> {
    this.#byId.set(kept.record.id, kept)
    try {
      await this.#kv.put(KEY_PREFIX + kept.hash.toString('hex'), encodeJson(kept.record))
    } catch (error) {
      this.#byId.delete(kept.record.id)
      throw error
    }
    this.#set(kept)
  }

  #set(kept: Kept): void {
    this.#byHash.set(kept.hash.toString('hex'), kept)
    this.#byId.set(kept.record.id, kept)
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

function shownBefore(id: string): SandlotError {
  return new SandlotError('idempotency_conflict', `this request made the key ${id} before`, {
    hint: `Its text was shown that once. If it was lost, revoke it and create another: \`sandlot keys revoke ${id}\`.`,
  })
}
