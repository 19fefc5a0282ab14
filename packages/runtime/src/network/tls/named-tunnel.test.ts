/** TLS in a tunnel to a name is for that name. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, createServer as createTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { issueFor, makeAuthority } from '../secrets/certificate.ts'
import {
  connectBy,
  listening,
  readAll,
  readExactly,
  relayBed,
  throughTcp,
} from '../testing/relay-bed.ts'

let host: Server & { port: number }
const names: TLSSocket['servername'][] = []

beforeAll(async () => {
  const authority = await makeAuthority('of tests', Date.now())
  const { certificate, key } = await issueFor('api.example', authority, Date.now())
  host = await listening(
    createTls({ cert: certificate, key }, (socket) => {
      names.push(socket.servername)
      socket.on('error', () => {})
      socket.end('hello')
    }),
  )
})
afterAll(() => void host.close())

function bedFor(port: number, allow: readonly string[] = ['*.example']) {
  return relayBed(
    { allow: ['127.0.0.1', ...allow].map((entry) => `${entry}:${port}`) },
    { names: { 'api.example': ['127.0.0.1'], 'bücher.example': ['127.0.0.1'] } },
  )
}

async function tunnel(bed: ReturnType<typeof relayBed>, to: string): Promise<Duplex> {
  const { inside, status } = await connectBy(bed, to)
  expect(status).toBe('HTTP/1.1 200')
  await readExactly(inside, ' Connection established\r\n\r\n'.length)
  return inside
}

async function secure(inside: Duplex, servername: string | undefined): Promise<TLSSocket> {
  const socket = await throughTcp(inside)
  return connect({
    ...{ socket, rejectUnauthorized: false },
    ...(servername === undefined ? {} : { servername }),
  })
}

test.each(['api.example', 'API.example'])(
  'for the name of the tunnel, as %s',
  async (servername) => {
    const bed = bedFor(host.port)
    const tls = await secure(await tunnel(bed, `api.example:${host.port}`), servername)
    expect(await readAll(tls)).toBe('hello')
    expect(names.at(-1)).toBe(servername)
    expect(bed.news).toMatchObject([{ outcome: 'allowed' }])
  },
)

test('for another name it is cut off by an alert, told, and the host sees nothing of it', async () => {
  const before = names.length
  const bed = bedFor(host.port)
  const tls = await secure(await tunnel(bed, `api.example:${host.port}`), 'evil.example')
  const [error] = await once(tls, 'error')
  expect(error.message).toContain('unrecognized name')
  expect(names).toHaveLength(before)
  const target = `api.example:${host.port}`
  expect(bed.news).toMatchObject([
    { outcome: 'allowed' },
    { outcome: 'other_server', target, detail: expect.stringContaining('is for "evil.example"') },
  ])
  expect(await bed.news[0]?.opened?.closed).toMatchObject({ sentBytes: 0 })
})

test('for no name, the host’s own answers', async () => {
  const bed = bedFor(host.port)
  const tls = await secure(await tunnel(bed, `api.example:${host.port}`), undefined)
  expect(await readAll(tls)).toBe('hello')
  expect(names.at(-1)).toBe(false)
})

test('in a tunnel to an address, any name', async () => {
  const tls = await secure(
    await tunnel(bedFor(host.port), `127.0.0.1:${host.port}`),
    'other.example',
  )
  expect(await readAll(tls)).toBe('hello')
})

test('a hello that can’t be read goes nowhere', async () => {
  const bed = bedFor(host.port)
  const inside = await tunnel(bed, `api.example:${host.port}`)
  inside.write(Buffer.of(0x16, 3, 1, 0, 4, 2, 0, 0, 0))
  expect(await readExactly(inside, 7)).toEqual(Buffer.of(0x15, 3, 1, 0, 2, 2, 112))
  expect(bed.news.at(-1)).toMatchObject({ outcome: 'other_server' })
  inside.destroy()
})

test('a host that speaks first is heard, and half a hello at the end is passed on', async () => {
  const heard: Promise<string>[] = []
  const greeting = await listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.write('welcome')
      heard.push(readAll(socket).finally(() => socket.end('bye')))
    }),
  )
  const inside = await tunnel(bedFor(greeting.port), `api.example:${greeting.port}`)
  expect(String(await readExactly(inside, 7))).toBe('welcome')
  inside.end(Buffer.of(0x16, 3, 1))
  expect(await readAll(inside)).toBe('bye')
  expect(await heard[0]).toBe('\x16\x03\x01')
  greeting.close()
})
