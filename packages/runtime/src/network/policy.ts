import { type NetworkPolicy, parseNetworkHost } from '@sandlot/protocol'
import { canonicalHost, type Target } from './host.ts'
import type { Reach } from './reach.ts'

/** A host and port that the machine takes packages from. */
export interface MirrorHost {
  readonly host: string
  readonly port: number
}

/** A policy in the form that decides. */
export interface CompiledPolicy {
  readonly policy: NetworkPolicy
  readonly allowsAnything: boolean
  /** How far the target may lead; undefined: it is refused. Asked at each connect. */
  decide(target: Target): Reach | undefined
}

const PORTS_DEFAULT: readonly number[] = [80, 443]

interface Entry {
  readonly host: string
  /** Any name below `host`, at any depth, and not `host` itself. */
  readonly below: boolean
  readonly ports: readonly number[]
  readonly reach: Reach
}

/** Whether a policy says that the machine's package mirrors may be reached. */
export function wantsPackages(policy: NetworkPolicy): boolean {
  return typeof policy === 'string' ? policy === 'packages' : policy.packages === true
}

/** Whether the policy allows anything at all. */
export function allowsAnything(policy: NetworkPolicy): boolean {
  return wantsPackages(policy) || (typeof policy !== 'string' && policy.allow.length > 0)
}

/** `mirrors`: what `packages` stands for on this machine. */
export function compilePolicy(
  policy: NetworkPolicy,
  mirrors: readonly MirrorHost[],
): CompiledPolicy {
  const named = typeof policy === 'string' ? [] : policy.allow.map(entryOf)
  const packages = wantsPackages(policy) ? mirrors.map(mirrorEntry) : []
  const entries = [...named, ...packages].filter((entry) => entry !== undefined)
  return {
    policy,
    allowsAnything: entries.length > 0,
    decide(target) {
      const reaches = entries.filter((entry) => matches(entry, target)).map(({ reach }) => reach)
      return reaches.includes('machine') ? 'machine' : reaches[0]
    },
  }
}

function entryOf(text: string): Entry | undefined {
  const named = parseNetworkHost(text)
  const canonical = 'problem' in named ? undefined : canonicalHost(named.host)
  if ('problem' in named || !canonical) return undefined
  return {
    host: canonical.host,
    below: named.below,
    ports: named.port === undefined ? PORTS_DEFAULT : [named.port],
    reach: canonical.isAddress ? 'named' : 'public',
  }
}

function mirrorEntry({ host, port }: MirrorHost): Entry | undefined {
  const canonical = canonicalHost(host)
  if (!canonical) return undefined
  const reach = canonical.isAddress ? 'named' : 'machine'
  return { host: canonical.host, below: false, ports: [port], reach }
}

function matches({ host, below, ports }: Entry, target: Target): boolean {
  if (!ports.includes(target.port)) return false
  return below ? !target.isAddress && target.host.endsWith(`.${host}`) : target.host === host
}
