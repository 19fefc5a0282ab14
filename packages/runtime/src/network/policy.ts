import type { NetworkLimitsInForce, NetworkPolicy } from '@sandlot/protocol'
import { type Entry, entryOf, matches } from './entry.ts'
import { canonicalHost, type Target } from './host.ts'
import { NETWORK_LIMITS } from './limits.ts'
import { isWithin, type Reach } from './reach.ts'

/** A host and port that the machine takes packages from. */
export interface MirrorHost {
  readonly host: string
  readonly port: number
}

/** A target is allowed, by one entry. */
export interface Permit {
  /** The entry as it was written, or `packages`. */
  readonly rule: string
  readonly reach: Reach
  /** Whether an address that the target leads to may be dialled. `own`: those of the machine. */
  admits(address: string, own: () => ReadonlySet<string>): boolean
}

/** A policy in the form that decides. */
export interface CompiledPolicy {
  readonly policy: NetworkPolicy
  readonly limits: NetworkLimitsInForce
  readonly allowsAnything: boolean
  /** How far the target may lead; undefined: it is refused. Asked at each connect. */
  decide(target: Target): Permit | undefined
}

/** Whether a policy says that the machine's package mirrors may be reached. */
export function wantsPackages(policy: NetworkPolicy): boolean {
  return typeof policy === 'string' ? policy === 'packages' : policy.packages === true
}

/** Whether the policy allows anything at all. */
export function allowsAnything(policy: NetworkPolicy): boolean {
  return wantsPackages(policy) || (typeof policy !== 'string' && policy.allow.length > 0)
}

/** With what holds where a policy says nothing. */
export function limitsInForce(policy: NetworkPolicy): NetworkLimitsInForce {
  const { connections, connectionsPerMinute } = NETWORK_LIMITS
  const given = typeof policy === 'string' ? undefined : policy.limits
  return {
    connections: given?.connections ?? connections,
    connectionsPerMinute: given?.connectionsPerMinute ?? connectionsPerMinute,
    bytes: given?.bytes ?? null,
    bytesPerSecond: given?.bytesPerSecond ?? null,
  }
}

/**
 * `mirrors`: what `packages` stands for on this machine. A name that is allowed may lead to a private address where another entry
 * names that, by itself or by its network: both were meant. A name that is not allowed is refused wherever it leads, and never asked for.
 */
export function compilePolicy(
  policy: NetworkPolicy,
  mirrors: readonly MirrorHost[],
): CompiledPolicy {
  const named = typeof policy === 'string' ? [] : policy.allow.map(entryOf)
  const packages = wantsPackages(policy) ? mirrors.map(mirrorEntry) : []
  const entries = [...named, ...packages].filter((entry) => entry !== undefined)
  return {
    policy,
    limits: limitsInForce(policy),
    allowsAnything: entries.length > 0,
    decide(target) {
      const found = entries.filter((entry) => matches(entry, target))
      const best = RANKED.flatMap((reach) => found.find((entry) => entry.reach === reach) ?? [])[0]
      return best && permitOf(best, target, entries)
    },
  }
}

/** Of several entries that name a target, the one that leads farthest. */
const RANKED: readonly Reach[] = ['machine', 'named', 'network', 'public']

function permitOf({ rule, reach }: Entry, target: Target, entries: readonly Entry[]): Permit {
  return {
    ...{ rule, reach },
    admits(address, own) {
      if (isWithin(reach, address, own)) return true
      const host = canonicalHost(address)
      if (target.isAddress || !host) return false
      return entries.some(
        (entry) =>
          matches(entry, { ...host, port: target.port }) && isWithin(entry.reach, address, own),
      )
    },
  }
}

function mirrorEntry({ host, port }: MirrorHost): Entry | undefined {
  const canonical = canonicalHost(host)
  if (!canonical) return undefined
  const reach = canonical.isAddress ? 'named' : 'machine'
  const ports = [{ first: port, last: port }]
  return { rule: 'packages', host: canonical.host, below: false, ports, reach }
}
