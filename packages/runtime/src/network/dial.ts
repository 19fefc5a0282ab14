import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, type LookupFunction, type Socket } from 'node:net'
import { unlessAborted } from '../unless-aborted.ts'
import { formatTarget, type Target } from './host.ts'
import { NETWORK_LIMITS } from './limits.ts'
import type { ResolvedAddress } from './names.ts'
import type { Permit } from './policy.ts'
import { privateAddress, Refusal } from './refusal.ts'

/** What dialling takes from the machine; tests bring their own. */
export interface DialMachine {
  /** Empty where the name has no address. Aborted, it ends soon. */
  resolve(name: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]>
  /** Addresses of the machine itself. */
  own(): ReadonlySet<string>
  /** The proxy by which the machine reaches what it takes packages from; undefined: directly. */
  upstream(target: Target): URL | undefined
}

export interface DialOptions {
  readonly machine: DialMachine
  readonly permit: Permit
  readonly signal: AbortSignal
  readonly timeoutMs?: number
  readonly lookupMs?: number
}

/**
 * A connection to the target. The name is resolved once, and one of the addresses that were looked at is dialled: another answer of
 * the resolver a moment later changes nothing. Rejects with a `Refusal`.
 */
export async function dial(target: Target, options: DialOptions): Promise<Socket> {
  const { machine, permit, timeoutMs = NETWORK_LIMITS.dialMs } = options
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([options.signal, timeout])
  try {
    const proxy = permit.reach === 'machine' ? machine.upstream(target) : undefined
    if (proxy) return await connectBy(proxy, target, { ...options, signal })
    const addresses = await resolved(target, { ...options, signal })
    const permitted = addresses.filter(({ address }) => permit.admits(address, machine.own))
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

async function resolved(
  { host, isAddress }: Pick<Target, 'host' | 'isAddress'>,
  { machine, signal, lookupMs = NETWORK_LIMITS.lookupMs }: DialOptions,
): Promise<readonly ResolvedAddress[]> {
  if (isAddress) return [{ address: host, family: host.includes(':') ? 6 : 4 }]
  const late = AbortSignal.timeout(lookupMs)
  const within = AbortSignal.any([signal, late])
  const found = await unlessAborted(within, machine.resolve(host, within)).catch((cause) => {
    signal.throwIfAborted()
    if (late.aborted)
      throw new Refusal('timeout', `the name ${host} has no answer in ${lookupMs} ms`)
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Refusal('unresolved', `the name ${host} can't be resolved: ${why}`, { cause })
  })
  if (found.length > 0) return found.slice(0, NETWORK_LIMITS.addresses)
  throw new Refusal('unresolved', `there is no address of the name ${host}`)
}

/** One after the other, the next one early where one is slow; none beyond those given. */
function connectTo(
  addresses: readonly ResolvedAddress[],
  { host, port, isAddress }: Target,
  signal: AbortSignal,
): Promise<Socket> {
  return connected(
    connect({
      ...{ host, port, allowHalfOpen: true, noDelay: true },
      ...(isAddress
        ? {}
        : {
            lookup: (_name, how, done) => answerLookup(addresses, how, done),
            autoSelectFamily: true,
          }),
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

/** In the shape that was asked for. */
function answerLookup(
  found: readonly ResolvedAddress[],
  options: { readonly all?: boolean | undefined },
  done: Parameters<LookupFunction>[2],
): void {
  const all = found.map(({ address, family }) => ({ address, family }))
  const [first] = all
  if (options.all) done(null, all)
  else done(null, first?.address ?? '', first?.family)
}

/** Through the machine's own proxy, which resolves the name itself. */
function connectBy(proxy: URL, target: Target, options: DialOptions): Promise<Socket> {
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
    signal: options.signal,
    lookup: (host, how, done) => {
      resolved({ host, isAddress: false }, options).then(
        (found) => answerLookup(found, how, done),
        (error) => done(error, ''),
      )
    },
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
