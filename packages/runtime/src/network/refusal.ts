import type { NetworkPolicy } from '@sandlot/protocol'
import { formatTarget, type Target } from './host.ts'

export const REFUSALS = {
  /** The policy names no such host. */
  not_allowed: 403,
  /** The policy allows the name, and it leads to an address that no name may lead to. */
  private_address: 403,
  /** Too many connections of this sandbox. */
  limit: 503,
  /** No address of that name. */
  unresolved: 502,
  /** Nobody answers there. */
  unreachable: 502,
  timeout: 504,
  /** No request that a proxy answers. */
  invalid: 400,
} as const
export type RefusalKind = keyof typeof REFUSALS

const REASONS: Readonly<Record<RefusalKind, string>> = {
  not_allowed: 'Forbidden by network policy',
  private_address: 'Forbidden by network policy',
  limit: 'Too many connections',
  unresolved: 'No such host',
  unreachable: 'Bad Gateway',
  timeout: 'Gateway Timeout',
  invalid: 'Bad Request',
}

/** Why a connection is not made; the text is for whoever reads it inside. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: RefusalKind
  /** For the line of an answer: of a tunnel that was refused, many clients show no more than that. ASCII. */
  readonly reason: string

  constructor(
    kind: RefusalKind,
    message: string,
    options: { readonly cause?: unknown; readonly reason?: string } = {},
  ) {
    super(message, { cause: options.cause })
    this.kind = kind
    this.reason = options.reason ?? REASONS[kind]
  }

  get status(): number {
    return REFUSALS[this.kind]
  }
}

export function notAllowed(target: Target, policy: NetworkPolicy): Refusal {
  const entry = entryFor(target)
  return new Refusal(
    'not_allowed',
    `${formatTarget(target)} is not allowed by the network policy of this sandbox, which is ${shown(policy)}. ` +
      `To allow it: network: { allow: ['${entry}'] }, or --allow ${entry}.`,
    { reason: `${REASONS.not_allowed}: ${entry} is not in its allow` },
  )
}

export function privateAddress(target: Target, addresses: readonly string[]): Refusal {
  const first = addresses[0] ?? ''
  const entry = entryFor({ ...target, host: first })
  return new Refusal(
    'private_address',
    `${formatTarget(target)} leads to ${first}, a private address or one of the machine. ` +
      `A name is not enough for it; to allow the address itself: network: { allow: ['${entry}'] }.`,
    {
      reason: `${REASONS.private_address}: it leads to a private address, and ${entry} is not in its allow`,
    },
  )
}

/** As an entry of a policy would say it. */
function entryFor(target: Target): string {
  const text = formatTarget(target)
  return target.port === 80 || target.port === 443 ? text.slice(0, text.lastIndexOf(':')) : text
}

const SHOWN_HOSTS = 8

function shown(policy: NetworkPolicy): string {
  if (typeof policy === 'string') return `'${policy}'`
  const { allow, packages } = policy
  const hosts = [...allow.slice(0, SHOWN_HOSTS), ...(allow.length > SHOWN_HOSTS ? ['…'] : [])]
  return `{ allow: [${hosts.join(', ')}]${packages ? ', packages: true' : ''} }`
}
