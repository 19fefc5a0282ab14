/**
 * Tokens that lead to one port without a key. They are part of a URL, and one label of a host name: no more than 63 lower-case letters,
 * digits and hyphens, so that each (sandbox, port) can have an origin of its own in a browser.
 *
 * ```
 * 8000-k3j…0a-tm3x2q-c7v2…e      port, sandbox, end in seconds (base 36), key's tag and signature (base 32)
 * ```
 *
 * It ends at its time, with its sandbox, and with the key in whose name it was given.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { ID_PREFIXES, SandlotError } from '@sandlot/protocol'
import { DAEMON_KEY, type KeyRing } from '../http/keys.ts'
import type { Signer } from '../http/signed.ts'
import { SERVER_LIMITS } from '../limits.ts'

/** What a token allows. */
export interface PortRight {
  readonly sandbox: string
  readonly port: number
  /** Id of the key in whose name it was given. */
  readonly key: string
  readonly expiresAtMs: number
}

const SHAPE = /^([1-9]\d{0,4})-([a-z0-9]{20})-([a-z0-9]{1,8})-([a-z2-7]{2})([a-z2-7]{26})$/

export class PortTokens {
  readonly #signer: Signer
  readonly #keys: KeyRing
  readonly #now: () => number

  constructor(parts: {
    readonly signer: Signer
    readonly keys: KeyRing
    readonly now: () => number
  }) {
    this.#signer = parts.signer
    this.#keys = parts.keys
    this.#now = parts.now
  }

  /**
   * Its end is a whole second.
   * @throws SandlotError `invalid_request` for a time that has passed or is too far away
   */
  sign(right: PortRight): string {
    const seconds = Math.floor(right.expiresAtMs / 1_000)
    const label = right.sandbox.slice(ID_PREFIXES.sandbox.length + 1)
    const signature = this.#signatureOf({ ...right, expiresAtMs: seconds * 1_000 })
    return `${right.port}-${label}-${seconds.toString(36)}-${tagOf(right.key)}${signature}`
  }

  /** @throws SandlotError `token_invalid`, `token_expired`, `unauthorized` where its key was revoked */
  verify(token: string): PortRight {
    const [, port, label, end, tag, signature] = SHAPE.exec(token) ?? []
    if (signature === undefined) throw invalid()
    const expiresAtMs = Number.parseInt(end as string, 36) * 1_000
    // Before its signature is looked at: nobody learns anything by it.
    if (expiresAtMs <= this.#now()) {
      const at = new Date(expiresAtMs).toISOString()
      throw new SandlotError('token_expired', `this URL was good until ${at}`, {
        hint: 'Ask for a new one: `sandbox.ports.url(PORT, { expires })`.',
      })
    }
    // None was ever given for longer.
    if (expiresAtMs > this.#now() + SERVER_LIMITS.signedPortMs) throw invalid()
    const sandbox = `${ID_PREFIXES.sandbox}_${label}`
    for (const { id: key } of [...this.#keys.list(), { id: DAEMON_KEY }]) {
      if (tagOf(key) !== tag) continue
      const right = { sandbox, port: Number(port), key, expiresAtMs }
      if (!isSame(this.#signatureOf(right), signature)) continue
      this.#keys.check(key)
      return right
    }
    throw invalid()
  }

  /** 130 bits of the daemon's own signature. */
  #signatureOf({ sandbox, port, key, expiresAtMs }: PortRight): string {
    const signed = this.#signer.sign('port', [sandbox, port, key], expiresAtMs)
    return base32(createHash('sha256').update(signed).digest()).slice(0, 26)
  }
}

/** Sandbox and port that a token is about, for the log: not that it is one. */
export function placeOf(token: string): { readonly sandbox: string; readonly port: string } {
  const [, port = '?', label] = SHAPE.exec(token) ?? []
  return { sandbox: label === undefined ? '?' : `${ID_PREFIXES.sandbox}_${label}`, port }
}

function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** Finds the key again among a thousand without a signature for each. */
function tagOf(key: string): string {
  return base32(createHash('sha256').update(key).digest()).slice(0, 2)
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** The first 160 bits. */
function base32(bytes: Uint8Array): string {
  let text = ''
  for (let bit = 0; bit < 160; bit += 5) {
    const two = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    text += ALPHABET[(two >> (11 - (bit & 7))) & 31]
  }
  return text
}

function invalid(): SandlotError {
  return new SandlotError('token_invalid', 'this is no URL of a port that this daemon gave', {
    hint: 'Copy it whole, or ask for a new one: `sandbox.ports.url(PORT)`. A revoked key takes its URLs along.',
  })
}
