/** For tests of the relay: a server of this machine, and a relay whose resolver says what the test wants. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { NetworkPolicy } from '@sandlot/protocol'
import { connectionPair } from '../../fake/connection-pair.ts'
import { ByteReader } from '../byte-reader.ts'
import { compilePolicy, type MirrorHost } from '../policy.ts'
import { NetworkRelay, type RelayNews, type RelayOptions } from '../relay.ts'

export interface RelayBed {
  readonly relay: NetworkRelay
  readonly news: RelayNews[]
  /** Names that were resolved, in order. */
  readonly resolved: string[]
  /** A connection from inside. */
  connect(): Duplex
}

export function relayBed(
  policy: NetworkPolicy,
  options: {
    /** Names and their addresses; `never`: the resolver does not answer. */
    readonly names?: Readonly<Record<string, readonly string[] | 'never'>>
    readonly mirrors?: readonly MirrorHost[]
    readonly upstream?: URL
    readonly limits?: RelayOptions['limits']
    readonly model?: RelayOptions['model']
    readonly spentBytes?: number
    readonly secrets?: RelayOptions['secrets']
    /** In place of `names`. */
    readonly resolve?: RelayOptions['machine']['resolve']
  } = {},
): RelayBed {
  const { names = {}, mirrors = [], upstream, limits, model, spentBytes, secrets } = options
  const news: RelayNews[] = []
  const resolved: string[] = []
  const relay = new NetworkRelay({
    policy: compilePolicy(policy, mirrors),
    onNews: (one) => news.push(one),
    machine: {
      own: () => new Set(),
      upstream: () => upstream,
      async resolve(name, signal) {
        resolved.push(name)
        if (options.resolve) return await options.resolve(name, signal)
        const found = names[name]
        if (found === 'never') return await new Promise(() => {})
        if (!found) throw new Error(`ENOTFOUND ${name}`)
        return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      },
    },
    ...(limits ? { limits } : {}),
    ...(model ? { model } : {}),
    ...(secrets ? { secrets } : {}),
    ...(spentBytes === undefined ? {} : { spentBytes }),
  })
  return {
    ...{ relay, news, resolved },
    connect() {
      const [inside, outside] = connectionPair()
      relay.accept(outside)
      return inside
    },
  }
}

/** A tunnel that was asked for, and the beginning of the answer. */
export async function connectBy(
  bed: RelayBed,
  authority: string,
): Promise<{ inside: Duplex; status: string }> {
  const inside = bed.connect()
  inside.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
  const status = (await readExactly(inside, 12)).toString()
  return { inside, status }
}

export async function listening<T extends Server>(server: T): Promise<T & { port: number }> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(server, { port: (server.address() as { port: number }).port })
}

/** A socket of the kernel in the place of a stream, as a client inside has it. */
export async function throughTcp(inside: Duplex): Promise<Socket> {
  const server = await listening(createServer())
  const socket = connect(server.port, '127.0.0.1')
  const [other] = (await once(server, 'connection')) as [Socket]
  server.close()
  other.on('error', () => inside.destroy())
  inside.on('error', () => other.destroy())
  other.pipe(inside).pipe(other)
  return socket
}

/** Says back in capital letters what it hears; ends when the other side ends. */
export function shoutingServer(): Promise<Server & { port: number }> {
  return listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => socket.write(bytes.toString().toUpperCase()))
      socket.on('end', () => socket.end('BYE'))
    }),
  )
}

/** Everything that comes until the end, as text. */
export async function readAll(stream: Duplex): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** The next bytes; what comes behind them can still be read. */
export async function readExactly(stream: Duplex, count: number): Promise<Buffer> {
  const reader = new ByteReader(stream)
  try {
    return await reader.take(count)
  } finally {
    reader.release()
  }
}
