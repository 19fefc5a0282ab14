import { lookup } from 'node:dns/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, type LookupFunction, type Socket } from 'node:net'
import { unlessAborted } from '../unless-aborted.ts'
import { formatTarget, type Target } from './host.ts'
import { NETWORK_LIMITS } from './limits.ts'
import { isWithin, ownAddresses, type Reach } from './reach.ts'
import { privateAddress, Refusal } from './refusal.ts'

/** An address of a name, as the machine's resolver gives it. */
export interface ResolvedAddress {
  readonly address: string
  readonly family: number
}

/** What dialling takes from the machine; tests bring their own. */
export interface DialMachine {
  resolve(name: string): Promise<readonly ResolvedAddress[]>
  /** Addresses of the machine itself. */
  own(): ReadonlySet<string>
  /** The proxy by which the machine reaches what it takes packages from; undefined: directly. */
  upstream(target: Target): URL | undefined
}

export function thisMachine(upstream: DialMachine['upstream'] = () => undefined): DialMachine {
  return {
    resolve: (name) => lookup(name, { all: true, order: 'verbatim' }),
    own: ownAddresses,
    upstream,
  }
}

export interface DialOptions {
  readonly machine: DialMachine
  readonly reach: Reach
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

/**
 * A connection to the target. The name is resolved once, and one of the addresses that were looked at is dialled: another answer of
 * the resolver a moment later changes nothing. Rejects with a `Refusal`.
 */
export async function dial(target: Target, options: DialOptions): Promise<Socket> {
  const { machine, reach, timeoutMs = NETWORK_LIMITS.dialMs } = options
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([options.signal, timeout])
  try {
    const proxy = reach === 'machine' ? machine.upstream(target) : undefined
    if (proxy) return await connectBy(proxy, target, signal)
    const addresses = await unlessAborted(signal, resolved(target, machine))
    const permitted = addresses.filter(({ address }) => isWithin(reach, address, machine.own))
    if (permitted.length === 0) {
      throw privateAddress(
        target,
        addresses.map(({ address }) => address),
      )
    }
    return await connectTo(permitted, target, signal)
  } catch (error) {
    if (error instanceof Refusal) throw error
    if (timeout.aborted && !options.signal.aborted) {
      throw new Refusal('timeout', `${formatTarget(target)} did not answer in ${timeoutMs} ms`)
    }
    const why = error instanceof Error ? error.message : String(error)
    throw new Refusal('unreachable', `${formatTarget(target)} can't be reached: ${why}`, {
      cause: error,
    })
  }
}

async function resolved(target: Target, machine: DialMachine): Promise<readonly ResolvedAddress[]> {
  if (target.isAddress) {
    return [{ address: target.host, family: target.host.includes(':') ? 6 : 4 }]
  }
  try {
    const found = await machine.resolve(target.host)
    if (found.length > 0) return found.slice(0, NETWORK_LIMITS.addresses)
  } catch (cause) {
    throw new Refusal('unresolved', `there is no address of the name ${target.host}`, { cause })
  }
  throw new Refusal('unresolved', `there is no address of the name ${target.host}`)
}

/** One after the other, the next one early where one is slow; none beyond those given. */
function connectTo(
  addresses: readonly ResolvedAddress[],
  { host, port, isAddress }: Target,
  signal: AbortSignal,
): Promise<Socket> {
  const given: LookupFunction = (_name, options, done) => {
    const all = addresses.map(({ address, family }) => ({ address, family }))
    const [first] = all
    if (options.all) done(null, all)
    else done(null, first?.address ?? '', first?.family)
  }
  return connected(
    connect({
      ...{ host, port, allowHalfOpen: true, noDelay: true },
      ...(isAddress ? {} : { lookup: given, autoSelectFamily: true }),
    }),
    signal,
  )
}

function connected(socket: Socket, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const abort = () => socket.destroy(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('the connection was closed')))
  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    socket.off('error', reject)
  })
}

/** Through the machine's own proxy, which resolves the name itself. */
function connectBy(proxy: URL, target: Target, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const { username, password } = proxy
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authority = formatTarget(target)
  const request = (proxy.protocol === 'https:' ? httpsRequest : httpRequest)({
    host: proxy.hostname,
    port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port),
    method: 'CONNECT',
    path: authority,
    agent: false,
    signal,
    headers: {
      host: authority,
      ...(username === ''
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }),
    },
  })
  request.once('connect', (response, socket, head) => {
    if (response.statusCode !== 200) {
      socket.destroy()
      return reject(new Error(`the machine's proxy answers ${response.statusCode}`))
    }
    if (head.length > 0) socket.unshift(head)
    resolve(socket as Socket)
  })
  request.once('response', (response) => {
    response.destroy()
    reject(new Error(`the machine's proxy answers ${response.statusCode}`))
  })
  request.once('error', reject)
  request.end()
  return promise
}
