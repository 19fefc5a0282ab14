import type { Engine } from '@sandlot/engine'
import {
  type FunctionSpec,
  LIMITS,
  NETWORK_PHASES,
  type PhaseNetwork,
  parseNetworkHost,
  SandlotError,
  type SecretUses,
  type SecretView,
  secretView,
} from '@sandlot/protocol'
import {
  Authority,
  activeSecrets,
  compilePolicy,
  makeAuthority,
  RelaySecrets,
  targetOf,
} from '@sandlot/runtime'
import { z } from 'zod'
import { decodeJson, encodeJson } from '../json.ts'
import { kvEntries, kvRecords } from '../kv-records.ts'
import type { Seal } from './seal.ts'

const secretRecord = secretView.extend({ sealed: z.string() })
const authorityRecord = z.object({ certificate: z.string(), sealed: z.string() })

const PREFIX = 'secret/'
const PLACEHOLDER = 'sandlot-secret-'

/**
 * The secrets of projects: `kv secret/<project>/<name>`, sealed; and of each project that lets TLS be taken part in the authority that
 * its sandboxes trust: `kv network-authority/<project>`. No value leaves but into the request that it is for.
 *
 * What stands for a secret inside is made of the project and the secret's name with the daemon's key. It is the same in each sandbox, so
 * that what was saved of one (a fork, a memory snapshot) goes on in another; where the other does not use the secret, it is nothing.
 */
export class Secrets {
  readonly #kv: Engine['kv']
  readonly #seal: Seal
  readonly #now: () => number
  readonly #authorities = new Map<string, Promise<Authority>>()

  constructor({ kv }: Pick<Engine, 'kv'>, seal: Seal, now: () => number) {
    this.#kv = kv
    this.#seal = seal
    this.#now = now
  }

  /** Keeps it, or another value of it. @throws SandlotError `too_large` beyond as many as a project may have */
  async set(project: string, name: string, value: string): Promise<SecretView> {
    const before = await this.#find(project, name)
    if (!before && (await this.list(project)).length >= LIMITS.secrets) {
      throw new SandlotError('too_large', `a project has at most ${LIMITS.secrets} secrets`, {
        hint: 'Delete those that nothing uses: `sandlot secrets delete NAME`.',
      })
    }
    const setAtMs = this.#now()
    const view = { name, createdAtMs: before?.createdAtMs ?? setAtMs, setAtMs }
    const sealed = this.#seal.seal(value, placeOf(project, name))
    await this.#kv.put(keyOf(project, name), encodeJson({ ...view, sealed }))
    return view
  }

  async list(project: string): Promise<SecretView[]> {
    const found = await Array.fromAsync(kvRecords(this.#kv, keyOf(project, ''), secretRecord))
    return found.map(({ name, createdAtMs, setAtMs }) => ({ name, createdAtMs, setAtMs }))
  }

  /** @throws SandlotError `secret_unknown` */
  async delete(project: string, name: string): Promise<void> {
    if (!(await this.#find(project, name))) throw unknownSecret(name)
    await this.#kv.delete(keyOf(project, name))
  }

  /**
   * Whether sandboxes can use them so: the secrets are there, their hosts are allowed by some phase, and no variable is set twice.
   * @throws SandlotError `secret_unknown`, `invalid_request`
   */
  async check(
    project: string,
    uses: SecretUses | undefined,
    given: {
      readonly network: PhaseNetwork
      readonly env?: Readonly<Record<string, string>>
      /** Where they stand in the request. Default: its body. */
      readonly at?: string
    },
  ): Promise<void> {
    const { at = 'body' } = given
    // A real interface passes no relay that could put anything in.
    const policies = NETWORK_PHASES.map((phase) => given.network[phase])
      .filter((policy) => policy !== undefined && policy !== 'open')
      .map((policy) => compilePolicy(policy, []))
    for (const [variable, { from, hosts }] of Object.entries(uses ?? {})) {
      if (given.env && Object.hasOwn(given.env, variable)) {
        throw wrong(`${at}.secrets.${variable}: ${at}.env has this variable too`)
      }
      for (const text of hosts) {
        const target = representative(text)
        if (target && policies.some((policy) => policy.decide(target))) continue
        throw wrong(
          `${at}.secrets.${variable}.hosts: ${JSON.stringify(text)} is not allowed by the network policy`,
          `A secret opens no way out: name the host in network, too, as { allow: [${JSON.stringify(text)}] }.`,
        )
      }
      const found = await this.#find(project, from)
      if (!found) throw unknownSecret(from)
      if (!this.#opens(project, found)) throw sealedSecret(from)
    }
  }

  /** Those that this daemon's key doesn't open: another file has taken its place. */
  async unopened(): Promise<{ project: string; name: string }[]> {
    const unopened: { project: string; name: string }[] = []
    for await (const { key, value } of kvEntries(this.#kv, PREFIX)) {
      const project = decodeURIComponent(key.slice(PREFIX.length).split('/')[0] ?? '')
      const record = secretRecord.safeParse(decodeJson(value)).data
      if (record && !this.#opens(project, record)) unopened.push({ project, name: record.name })
    }
    return unopened
  }

  #opens(project: string, { name, sealed }: z.infer<typeof secretRecord>): boolean {
    try {
      this.#seal.open(sealed, placeOf(project, name))
      return true
    } catch {
      return false
    }
  }

  /** The same for those of a function's containers. */
  async checkFunction(
    project: string,
    { secrets, network = 'none', env }: Pick<FunctionSpec, 'secrets' | 'network' | 'env'>,
  ): Promise<void> {
    const at = 'body.function'
    await this.check(project, secrets, { at, network: { agent: network }, ...(env ? { env } : {}) })
  }

  /** As the relay of a sandbox needs them; undefined where it uses none. `trusted`: certificates that the machine trusts. */
  async relayed(
    project: string,
    uses: SecretUses | undefined,
    trusted: () => Promise<readonly string[]>,
  ): Promise<RelaySecrets | undefined> {
    if (!uses || Object.keys(uses).length === 0) return undefined
    const active = activeSecrets(uses, (name) => ({
      placeholder: PLACEHOLDER + this.#seal.mark(placeOf(project, name)),
      value: () => this.#value(project, name),
    }))
    if (!active.some(({ terminates }) => terminates)) return new RelaySecrets(active)
    const found = await trusted()
    const authority = await this.#authority(project)
    return new RelaySecrets(active, { authority, ...(found.length > 0 ? { trusted: found } : {}) })
  }

  async #value(project: string, name: string): Promise<string | undefined> {
    const found = await this.#find(project, name)
    if (!found) return undefined
    try {
      return this.#seal.open(found.sealed, placeOf(project, name))
    } catch {
      throw new Error('was sealed with another key than this daemon has: set it again')
    }
  }

  #authority(project: string): Promise<Authority> {
    const known = this.#authorities.get(project)
    if (known) return known
    const opened = this.#openAuthority(project)
    this.#authorities.set(project, opened)
    opened.catch(() => this.#authorities.delete(project))
    return opened
  }

  async #openAuthority(project: string): Promise<Authority> {
    const key = `network-authority/${encodeURIComponent(project)}`
    const found = await this.#kv.get(key)
    if (found) {
      const { certificate, sealed } = authorityRecord.parse(decodeJson(found.value))
      try {
        return new Authority({ certificate, key: this.#seal.open(sealed, key) }, this.#now)
      } catch {
        // The key file is another one: nobody can sign with that authority any more.
      }
    }
    const made = await makeAuthority(`project ${project}`, this.#now())
    const sealed = this.#seal.seal(made.key, key)
    await this.#kv.put(key, encodeJson({ certificate: made.certificate, sealed }))
    return new Authority(made, this.#now)
  }

  async #find(project: string, name: string) {
    const found = await this.#kv.get(keyOf(project, name))
    return found && secretRecord.parse(decodeJson(found.value))
  }
}

function keyOf(project: string, name: string): string {
  return `${PREFIX}${encodeURIComponent(project)}/${name}`
}

function placeOf(project: string, name: string): string {
  return JSON.stringify([project, name])
}

/** A target that an entry names. */
function representative(text: string) {
  const found = parseNetworkHost(text)
  if ('problem' in found) return undefined
  return targetOf(`${found.below ? 'x.' : ''}${found.host}`, found.ports?.first ?? 443)
}

export function unknownSecret(name: string): SandlotError {
  return new SandlotError(
    'secret_unknown',
    `there is no secret ${JSON.stringify(name.slice(0, 100))}`,
  )
}

function sealedSecret(name: string): SandlotError {
  return new SandlotError(
    'secret_unknown',
    `the secret ${JSON.stringify(name)} was sealed with another secrets.key than the daemon has`,
    { hint: `Set it again: \`sandlot secrets set ${name}\`.` },
  )
}

function wrong(message: string, hint?: string): SandlotError {
  return new SandlotError('invalid_request', message, hint === undefined ? {} : { hint })
}
