import { formatSize, type NetworkPolicy, type NetworkRefusal } from '@sandlot/protocol'
import { formatTarget, type Target } from './host.ts'

/** Why a connection from inside comes to nothing, and the status that says so over HTTP. */
export const REFUSALS = {
  not_allowed: 403,
  private_address: 403,
  other_name: 403,
  other_server: 403,
  limit: 503,
  rate_limit: 429,
  bytes_limit: 403,
  secret: 502,
  unresolved: 502,
  unreachable: 502,
  timeout: 504,
  invalid: 400,
} as const satisfies Record<NetworkRefusal, number>
export type RefusalKind = NetworkRefusal

const REASONS: Readonly<Record<RefusalKind, string>> = {
  not_allowed: 'Forbidden by network policy',
  private_address: 'Forbidden by network policy',
  other_name: 'Forbidden by network policy',
  other_server: 'Forbidden by network policy',
  limit: 'Too many connections',
  rate_limit: 'Too many connections in a minute',
  bytes_limit: 'Forbidden by network policy',
  secret: 'Secret not available',
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
  const found = target.isAddress
    ? 'is in a network that is allowed, and is an address of the machine, of its wire or of its cloud. A network'
    : `leads to ${first}, a private address or one of the machine. A name`
  return new Refusal(
    'private_address',
    `${formatTarget(target)} ${found} is not enough for it; ` +
      `to allow the address itself: network: { allow: ['${entry}'] }.`,
    {
      reason: `${REASONS.private_address}: it leads to a private address, and ${entry} is not in its allow`,
    },
  )
}

export function tooMany(connections: number): Refusal {
  return new Refusal('limit', `${connections} connections of this sandbox are open already`)
}

export function tooFast(perMinute: number): Refusal {
  return new Refusal(
    'rate_limit',
    `this sandbox asks for more than ${perMinute} connections in a minute (limits.connectionsPerMinute)`,
  )
}

export function tooMuch(bytes: number): Refusal {
  return new Refusal(
    'bytes_limit',
    `the ${formatSize(bytes)} that this sandbox may send and receive are used up (limits.bytes)`,
    { reason: `${REASONS.bytes_limit}: limits.bytes is used up` },
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
