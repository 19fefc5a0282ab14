import type { SecretPlace, SecretUses } from '@sandlot/protocol'
import { type Entry, entryOf, matches } from '../entry.ts'
import type { Target } from '../host.ts'
import { Refusal } from '../refusal.ts'
import type { Authority } from './authority.ts'

/** A secret as one sandbox uses it. */
export interface ActiveSecret {
  /** Variable of its commands. */
  readonly variable: string
  /** Name of the secret in its project. */
  readonly name: string
  /** What its commands have in its place. */
  readonly placeholder: string
  readonly places: readonly SecretPlace[]
  readonly terminates: boolean
  readonly hosts: readonly Entry[]
  /** Its value of this moment; undefined where it is not set. */
  value(): Promise<string | undefined>
}

/** A request on its way out. */
export interface RequestOut {
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** With its query. */
  readonly path: string
}

export interface Filled extends RequestOut {
  /** Variables whose secrets were put in. */
  readonly used: readonly string[]
  /** Headers of the answer, with placeholders where the secrets are said back. */
  cover(headers: readonly string[]): string[]
}

const BASIC = /^(basic\s+)([A-Za-z0-9+/=]+)\s*$/i

/** The secrets of one sandbox, put into requests to the hosts that each is for, and to no other. */
export class RelaySecrets {
  readonly #secrets: readonly ActiveSecret[]
  /** Present where any host's TLS is taken part in. */
  readonly authority: Authority | undefined
  /** Certificates by which hosts are verified. Default: those that Node.js brings. */
  readonly trusted: readonly string[] | undefined

  constructor(
    secrets: readonly ActiveSecret[],
    options: { readonly authority?: Authority; readonly trusted?: readonly string[] } = {},
  ) {
    this.#secrets = secrets
    this.authority = options.authority
    this.trusted = options.trusted
  }

  /** What commands have in the place of secrets. */
  get env(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#secrets.map(({ variable, placeholder }) => [variable, placeholder]),
    )
  }

  /** Whether the daemon takes part in the TLS of connections to it. */
  terminates(target: Target): boolean {
    if (!this.authority) return false
    return this.#for(target).some(({ terminates }) => terminates)
  }

  /**
   * `over`: what the request goes over. A secret whose TLS is taken part in goes over TLS alone. Rejects with a `Refusal` where one that
   * the request needs can't be had.
   */
  async fill(target: Target, request: RequestOut, over: 'tls' | 'plain'): Promise<Filled> {
    const found: { readonly secret: ActiveSecret; readonly value: string }[] = []
    let { path } = request
    let headers = [...request.headers]
    for (const secret of this.#for(target)) {
      const { placeholder, places, terminates } = secret
      if (terminates !== (over === 'tls')) continue
      const inHeaders =
        places.includes('headers') && headers.some((text) => holds(text, placeholder))
      const inQuery = places.includes('query') && queryOf(path).includes(placeholder)
      if (!inHeaders && !inQuery) continue
      const value = await currentOf(secret)
      found.push({ secret, value })
      if (inHeaders) headers = headers.map((text) => filled(text, placeholder, value))
      if (inQuery) {
        const at = path.indexOf('?')
        const query = path.slice(at).replaceAll(placeholder, encodeURIComponent(value))
        path = path.slice(0, at) + query
      }
    }
    return {
      ...{ headers, path, used: found.map(({ secret }) => secret.variable) },
      cover: (answer) =>
        answer.map((text) =>
          found.reduce(
            (covered, { secret, value }) =>
              covered
                .replaceAll(value, secret.placeholder)
                .replaceAll(encodeURIComponent(value), secret.placeholder),
            text,
          ),
        ),
    }
  }

  #for(target: Target): readonly ActiveSecret[] {
    return this.#secrets.filter(({ hosts }) => hosts.some((entry) => matches(entry, target)))
  }
}

/** `place` says of a secret's name what stands for it inside, and what it is. */
export function activeSecrets(
  uses: SecretUses,
  place: (name: string) => Pick<ActiveSecret, 'placeholder' | 'value'>,
): ActiveSecret[] {
  return Object.entries(uses).map(([variable, { from, hosts, tls, in: places }]) => ({
    ...{ variable, name: from, ...place(from) },
    places: places ?? ['headers'],
    terminates: tls === 'terminate',
    hosts: hosts.map(entryOf).filter((entry) => entry !== undefined),
  }))
}

async function currentOf({ name, variable, value }: ActiveSecret): Promise<string> {
  let why = 'is not set'
  try {
    const found = await value()
    if (found !== undefined) return found
  } catch (error) {
    why = error instanceof Error ? error.message : String(error)
  }
  throw new Refusal('secret', `the secret ${name}, for ${variable}, ${why}`)
}

function queryOf(path: string): string {
  const at = path.indexOf('?')
  return at === -1 ? '' : path.slice(at)
}

function holds(text: string, placeholder: string): boolean {
  return text.includes(placeholder) || (decoded(text)?.plain.includes(placeholder) ?? false)
}

function filled(text: string, placeholder: string, value: string): string {
  const basic = decoded(text)
  if (!basic?.plain.includes(placeholder)) return text.replaceAll(placeholder, value)
  const plain = basic.plain.replaceAll(placeholder, value)
  return basic.scheme + Buffer.from(plain, 'latin1').toString('base64')
}

/** `Basic …` of a header. */
function decoded(text: string): { readonly scheme: string; readonly plain: string } | undefined {
  const [, scheme, coded] = BASIC.exec(text) ?? []
  if (scheme === undefined || coded === undefined) return undefined
  return { scheme, plain: Buffer.from(coded, 'base64').toString('latin1') }
}
