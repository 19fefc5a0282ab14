import { createSecureContext, type SecureContext } from 'node:tls'
import { NETWORK_LIMITS } from '../limits.ts'
import { issueFor, type KeyedCertificate } from './certificate.ts'

/** Signs for the hosts whose TLS a daemon takes part in. Its certificates are kept in memory, the latest ones of them. */
export class Authority {
  readonly #own: KeyedCertificate
  readonly #now: () => number
  readonly #contexts = new Map<string, { readonly made: Promise<SecureContext>; madeMs: number }>()

  constructor(own: KeyedCertificate, now: () => number) {
    this.#own = own
    this.#now = now
  }

  /** What a sandbox has to trust. */
  get certificate(): string {
    return this.#own.certificate
  }

  /** For the daemon to be the host. */
  contextFor(host: string): Promise<SecureContext> {
    const nowMs = this.#now()
    const known = this.#contexts.get(host)
    this.#contexts.delete(host)
    const isFresh = known && nowMs < known.madeMs + NETWORK_LIMITS.certificateRenewMs
    const found = isFresh ? known : { made: this.#make(host, nowMs), madeMs: nowMs }
    this.#contexts.set(host, found)
    found.made.catch(() => this.#contexts.delete(host))
    const [oldest] = this.#contexts.keys()
    if (this.#contexts.size > NETWORK_LIMITS.certificates) this.#contexts.delete(oldest as string)
    return found.made
  }

  async #make(host: string, nowMs: number): Promise<SecureContext> {
    const { certificate, key } = await issueFor(host, this.#own, nowMs)
    return createSecureContext({ cert: certificate + this.#own.certificate, key })
  }
}
