/**
 * Tokens that the daemon signs and doesn't keep: whoever has one may do what it says until it expires. The daemon forgets them; what
 * must end them earlier (the end of a sandbox, a revoked key) is asked where they are used.
 *
 * ```
 * st_<base64url of [expiresAtMs, payload] as JSON>.<base64url of HMAC-SHA-256(secret, purpose ‖ NUL ‖ body)>
 * ```
 *
 * The payload is readable by whoever has the token: no secret belongs into it.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { formatDuration, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import { keptSecret } from '../kept-secret.ts'
import { SERVER_LIMITS } from '../limits.ts'

/** What a token is for. One of another purpose is as good as a forged one. */
export const SIGNED_PURPOSES = ['file', 'port', 'sandbox'] as const
export type SignedPurpose = (typeof SIGNED_PURPOSES)[number]

/** How tokens of each purpose begin, and the longest that they may last. */
const KINDS: Readonly<Record<SignedPurpose, { readonly prefix: string; readonly maxMs: number }>> =
  {
    file: { prefix: 'sf_', maxMs: SERVER_LIMITS.signedFileMs },
    port: { prefix: 'sp_', maxMs: SERVER_LIMITS.signedPortMs },
    sandbox: { prefix: 'st_', maxMs: SERVER_LIMITS.signedSandboxMs },
  }

/** What a token says, once it is known to be ours and not expired. The payload is for the caller to parse. */
export interface Verified {
  readonly payload: unknown
  readonly expiresAtMs: number
}

export class Signer {
  readonly #secret: string
  readonly #now: () => number

  /** With a secret of one's own, of at least 32 characters; a daemon opens its kept one. */
  constructor(secret: string, now: () => number) {
    this.#secret = secret
    this.#now = now
  }

  /** With the secret of this data directory (`signing-secret`, mode 0600), made when there is none. Tokens stay good over a restart. */
  static async open(dataDirectory: string, now: () => number): Promise<Signer> {
    const fresh = () => randomBytes(SECRET_BYTES).toString('base64url')
    return new Signer(await keptSecret(join(dataDirectory, 'signing-secret'), fresh), now)
  }

  /**
   * A token over a payload of JSON.
   * @throws SandlotError `invalid_request` for a time that has passed or is too far away, `too_large`
   */
  sign(purpose: SignedPurpose, payload: unknown, expiresAtMs: number): string {
    const { prefix, maxMs } = KINDS[purpose]
    const leftMs = expiresAtMs - this.#now()
    if (!(leftMs > 0 && leftMs <= maxMs)) {
      throw new SandlotError(
        'invalid_request',
        `expires: lies between now and ${formatDuration(maxMs)}`,
      )
    }
    const body = Buffer.from(JSON.stringify([Math.round(expiresAtMs), payload])).toString(
      'base64url',
    )
    const token = `${prefix}${body}.${this.#macOf(purpose, body)}`
    if (token.length > SERVER_LIMITS.signedBytes) {
      const message = `a signed token has ${SERVER_LIMITS.signedBytes} bytes at most`
      throw new SandlotError('too_large', message, { hint: 'Sign less: a shorter path, for one.' })
    }
    return token
  }

  /**
   * What a token of this purpose says. No I/O: the cost is that of one hash.
   * @throws SandlotError `token_invalid` for what this daemon didn't sign for this purpose, `token_expired`
   */
  verify(purpose: SignedPurpose, token: string): Verified {
    const { prefix } = KINDS[purpose]
    const [body = '', mac = '', ...more] = token.slice(prefix.length).split('.')
    const fits = token.startsWith(prefix) && token.length <= SERVER_LIMITS.signedBytes
    if (!fits || more.length > 0 || !this.#isMacOf(purpose, body, mac)) {
      throw new SandlotError('token_invalid', `this is no ${purpose} token of this daemon`)
    }
    const text = Buffer.from(body, 'base64url').toString()
    const [expiresAtMs, payload] = signedBody.parse(JSON.parse(text))
    if (expiresAtMs <= this.#now()) {
      const at = new Date(expiresAtMs).toISOString()
      throw new SandlotError('token_expired', `this ${purpose} token expired at ${at}`)
    }
    return { payload, expiresAtMs }
  }

  #isMacOf(purpose: SignedPurpose, body: string, mac: string): boolean {
    // As text: other last characters of base64 would give the same bytes.
    const given = Buffer.from(mac)
    const right = Buffer.from(this.#macOf(purpose, body))
    return given.length === right.length && timingSafeEqual(given, right)
  }

  #macOf(purpose: SignedPurpose, body: string): string {
    const mac = createHmac('sha256', this.#secret).update(`${purpose}\0${body}`)
    return mac.digest('base64url')
  }
}

const SECRET_BYTES = 32

const signedBody = z.tuple([z.number(), z.unknown()])
