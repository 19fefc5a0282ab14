/** Placeholders of requests, by hosts that are named, and by no other. */
import { once } from 'node:events'
import { createServer as httpServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as httpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { type SecretUsesInput, secretUses } from '@sandlot/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  connectBy,
  listening,
  readAll,
  readExactly,
  relayBed,
  throughTcp,
} from '../testing/relay-bed.ts'
import { Authority } from './authority.ts'
import { issueFor, makeAuthority } from './certificate.ts'
import { activeSecrets, RelaySecrets } from './relay-secrets.ts'

const VALUE = 'sk-very/secret+1'
const PLACEHOLDER = 'sandlot-secret-0123456789'

const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] =
  []
async function receive(request: IncomingMessage): Promise<void> {
  let body = ''
  for await (const part of request) body += part
  const { method = '', url = '', headers } = request
  seen.push({ method, url, headers, body })
}

let plain: Server & { port: number }
let secure: Server & { port: number }
let upstream: Authority
let own: Authority
beforeAll(async () => {
  plain = await listening(
    httpServer(async (request, response) => {
      await receive(request)
      response.setHeader('x-echo', String(request.headers.authorization ?? ''))
      response.end('plain says hello')
    }),
  )
  const keyed = await makeAuthority('upstream', Date.now())
  upstream = new Authority(keyed, () => Date.now())
  const { certificate, key } = await issueFor('api.example', keyed, Date.now())
  secure = await listening(
    httpsServer({ cert: certificate, key }, async (request, response) => {
      await receive(request)
      response.setHeader('x-echo', String(request.headers.authorization ?? ''))
      response.end('secure says hello')
    }),
  )
  secure.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const { method = '', url = '', headers } = request
    seen.push({ method, url, headers, body: '' })
    const { authorization = '' } = headers
    if (url === '/refused') {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\n\r\nnever')
      return
    }
    socket.write(
      `HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Echo: ${authorization}\r\n\r\nfirst `,
    )
    socket.write(String(head).toUpperCase())
    socket.on('data', (bytes) => socket.write(String(bytes).toUpperCase()))
  })
  own = new Authority(await makeAuthority('of tests', Date.now()), () => Date.now())
})
afterAll(() => {
  for (const server of [plain, secure]) {
    server.closeAllConnections()
    server.close()
  }
})

function bedOf(
  uses: SecretUsesInput,
  options: { readonly value?: () => Promise<string | undefined>; readonly trusted?: string[] } = {},
) {
  const { value = async () => VALUE, trusted = [upstream.certificate] } = options
  const active = activeSecrets(secretUses.parse(uses), () => ({ placeholder: PLACEHOLDER, value }))
  const secrets = new RelaySecrets(active, { authority: own, trusted })
  const ports = [plain.port, secure.port]
  const allow = ports.flatMap((port) => [`127.0.0.1:${port}`, `*.example:${port}`])
  const names = { 'api.example': ['127.0.0.1'], 'other.example': ['127.0.0.1'] }
  return relayBed({ allow }, { names, secrets })
}

async function ask(
  stream: Duplex,
  { path = '/', host, headers = {} }: { path?: string; host: string; headers?: object },
): Promise<string> {
  const lines = Object.entries({ Host: host, Connection: 'close', ...headers })
  stream.write(`GET ${path} HTTP/1.1\r\n${lines.map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n`)
  return await readAll(stream)
}

/** TLS through a tunnel, as a client inside does it. */
async function secureTunnel(
  bed: ReturnType<typeof relayBed>,
  host = 'api.example',
): Promise<{ readonly tls: TLSSocket; readonly issuer: string }> {
  const { inside, status } = await connectBy(bed, `${host}:${secure.port}`)
  expect(status).toBe('HTTP/1.1 200')
  await readExactly(inside, ' Connection established\r\n\r\n'.length)
  const tls = connect({
    socket: await throughTcp(inside),
    servername: host,
    ca: [own.certificate, upstream.certificate],
    ...(host === 'other.example' ? { checkServerIdentity: () => undefined } : {}),
  })
  await once(tls, 'secureConnect')
  return { tls, issuer: tls.getPeerCertificate().issuer.CN as string }
}

test('a request over plain HTTP has the secret in its headers, also inside Basic, and nowhere else', async () => {
  const bed = bedOf({ API_KEY: { from: 'key', hosts: [`api.example:${plain.port}`] } })
  const host = `api.example:${plain.port}`
  const basic = Buffer.from(`me:${PLACEHOLDER}`).toString('base64')
  const answer = await ask(bed.connect(), {
    ...{ path: `http://${host}/a?key=${PLACEHOLDER}`, host },
    headers: { Authorization: `Bearer ${PLACEHOLDER}`, 'X-Basic': `Basic ${basic}` },
  })
  expect(seen.at(-1)).toMatchObject({
    url: `/a?key=${PLACEHOLDER}`,
    headers: {
      authorization: `Bearer ${VALUE}`,
      'x-basic': `Basic ${Buffer.from(`me:${VALUE}`).toString('base64')}`,
    },
  })
  // What the host says back in its headers is covered again.
  expect(answer).toContain(`x-echo: Bearer ${PLACEHOLDER}`)
  expect(answer).not.toContain(VALUE)
  const closed = await bed.news[0]?.opened?.closed
  expect(closed).toMatchObject({ secrets: ['API_KEY'] })
})

test('a query has it where that is asked for, as a query needs it', async () => {
  const hosts = [`api.example:${plain.port}`]
  const bed = bedOf({ API_KEY: { from: 'key', hosts, in: ['query'] } })
  const host = `api.example:${plain.port}`
  const headers = { Authorization: `Bearer ${PLACEHOLDER}` }
  await ask(bed.connect(), {
    ...{ path: `http://${host}/${PLACEHOLDER}?key=${PLACEHOLDER}`, host, headers },
  })
  expect(seen.at(-1)).toMatchObject({
    url: `/${PLACEHOLDER}?key=${encodeURIComponent(VALUE)}`,
    headers: { authorization: `Bearer ${PLACEHOLDER}` },
  })
})

test('another host gets the placeholder', async () => {
  const bed = bedOf({ API_KEY: { from: 'key', hosts: [`api.example:${plain.port}`] } })
  for (const host of [`other.example:${plain.port}`, `127.0.0.1:${plain.port}`]) {
    const headers = { Authorization: `Bearer ${PLACEHOLDER}` }
    await ask(bed.connect(), { path: `http://${host}/`, host, headers })
    expect(seen.at(-1)?.headers.authorization).toBe(`Bearer ${PLACEHOLDER}`)
  }
})

const TERMINATED = () => ({
  API_KEY: { from: 'key', hosts: [`api.example:${secure.port}`], tls: 'terminate' as const },
})

test('TLS that is taken part in: the client sees our certificate, the host the secret', async () => {
  const bed = bedOf(TERMINATED())
  const { tls, issuer } = await secureTunnel(bed)
  expect(issuer).toBe('Sandlot of tests')
  const headers = { Authorization: `Bearer ${PLACEHOLDER}` }
  const answer = await ask(tls, { path: '/v1', host: `api.example:${secure.port}`, headers })
  expect(answer).toMatch(/^HTTP\/1.1 200 OK[\s\S]*secure says hello/)
  expect(answer).not.toContain(VALUE)
  expect(seen.at(-1)).toMatchObject({
    url: '/v1',
    headers: { authorization: `Bearer ${VALUE}`, host: `api.example:${secure.port}` },
  })
  expect(await bed.news[0]?.opened?.closed).toMatchObject({ secrets: ['API_KEY'] })
})

test('several requests go over one connection, bodies untouched', async () => {
  const bed = bedOf(TERMINATED())
  const { tls } = await secureTunnel(bed)
  let said = ''
  tls.on('data', (part) => {
    said += part
  })
  for (let at = 1; at <= 3; at += 1) {
    tls.write(
      `POST /${at} HTTP/1.1\r\nHost: api.example:${secure.port}\r\nX-Key: ${PLACEHOLDER}\r\n` +
        `Content-Length: ${PLACEHOLDER.length}\r\n\r\n${PLACEHOLDER}`,
    )
    await expect.poll(() => said.split('secure says hello').length).toBe(at + 1)
    expect(seen.at(-1)).toMatchObject({ url: `/${at}`, body: PLACEHOLDER, method: 'POST' })
    expect(seen.at(-1)?.headers['x-key']).toBe(VALUE)
  }
  expect(bed.news).toHaveLength(1)
  tls.destroy()
})

const WEBSOCKET = (path: string, host = `api.example:${secure.port}`) =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n` +
  `Sec-WebSocket-Key: abc\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`

test('a WebSocket has the secret in its request, then bytes go both ways', async () => {
  const bed = bedOf(TERMINATED())
  const { tls } = await secureTunnel(bed)
  tls.write(`${WEBSOCKET('/socket')}early `)
  await expect.poll(() => seen.at(-1)?.url).toBe('/socket')
  let answer = ''
  tls.on('data', (part) => {
    answer += part
  })
  await expect.poll(() => answer).toMatch(/^HTTP\/1.1 101 [\s\S]*\r\n\r\nfirst EARLY $/)
  tls.write('late ')
  await expect.poll(() => answer).toMatch(/EARLY LATE $/)
  tls.destroy()
  expect(answer).toContain(`X-Echo: Bearer ${PLACEHOLDER}\r\n`)
  expect(seen.at(-1)?.headers).toMatchObject({
    ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'abc' },
    authorization: `Bearer ${VALUE}`,
  })
  expect(await bed.news[0]?.opened?.closed).toMatchObject({ secrets: ['API_KEY'] })
})

test('a WebSocket that the host refuses, or that is for another host, is told so', async () => {
  const bed = bedOf(TERMINATED())
  const { tls } = await secureTunnel(bed)
  tls.write(WEBSOCKET('/refused'))
  expect(await readAll(tls)).toMatch(/^HTTP\/1.1 401 Unauthorized\r\n[\s\S]*\r\n\r\nnever$/)
  const before = seen.length
  const again = await secureTunnel(bed)
  again.tls.write(WEBSOCKET('/', 'evil.example'))
  expect(await readAll(again.tls)).toMatch(/^HTTP\/1.1 403 [\s\S]*the request is for "evil/)
  expect(seen).toHaveLength(before)
})

test('any other protocol that is asked for is overlooked', async () => {
  const { tls } = await secureTunnel(bedOf(TERMINATED()))
  const host = `api.example:${secure.port}`
  const headers = { Connection: 'close, Upgrade, HTTP2-Settings', Upgrade: 'h2c' }
  expect(await ask(tls, { host, headers })).toMatch(/^HTTP\/1.1 200 OK[\s\S]*secure says hello/)
})

test('a request for another host inside the TLS is refused, and told', async () => {
  const bed = bedOf(TERMINATED())
  const { tls } = await secureTunnel(bed)
  const answer = await ask(tls, { host: 'evil.example', headers: { 'X-Key': PLACEHOLDER } })
  expect(answer).toMatch(/^HTTP\/1.1 403 [\s\S]*the request is for "evil.example"/)
  expect(bed.news.at(-1)).toMatchObject({ outcome: 'other_name' })
})

test('a host that no secret is for keeps its TLS to itself', async () => {
  const bed = bedOf(TERMINATED())
  const { tls, issuer } = await secureTunnel(bed, 'other.example')
  expect(issuer).toBe('Sandlot upstream')
  await ask(tls, { host: 'x', headers: { 'X-Key': PLACEHOLDER } })
  expect(seen.at(-1)?.headers['x-key']).toBe(PLACEHOLDER)
})

test('where TLS is taken part in, the secret never goes in the clear', async () => {
  const uses = TERMINATED()
  const hosts = [...uses.API_KEY.hosts, `api.example:${plain.port}`]
  const bed = bedOf({ API_KEY: { ...uses.API_KEY, hosts } })
  const host = `api.example:${plain.port}`
  await ask(bed.connect(), { path: `http://${host}/`, host, headers: { 'X-Key': PLACEHOLDER } })
  expect(seen.at(-1)?.headers['x-key']).toBe(PLACEHOLDER)
})

test('a host whose certificate is not good for it gets nothing, and the client is told why', async () => {
  const before = seen.length
  const bed = bedOf(TERMINATED(), { trusted: [own.certificate] })
  const inside = bed.connect()
  inside.write(`CONNECT api.example:${secure.port} HTTP/1.1\r\n\r\n`)
  expect(await readAll(inside)).toMatch(
    /^HTTP\/1.1 502 [\s\S]*TLS with api.example:\d+ failed: .*certificate/,
  )
  expect(bed.news.map(({ outcome }) => outcome)).toEqual(['allowed', 'unreachable'])
  expect(seen).toHaveLength(before)
})

test.each([
  [async () => undefined, 'the secret key, for API_KEY, is not set'],
  [() => Promise.reject(new Error('can’t be opened')), 'for API_KEY, can’t be opened'],
])('a secret that can’t be had is refused by its name', async (value, why) => {
  const before = seen.length
  const bed = bedOf({ API_KEY: { from: 'key', hosts: [`api.example:${plain.port}`] } }, { value })
  const host = `api.example:${plain.port}`
  const path = `http://${host}/`
  const headers = { 'X-Key': PLACEHOLDER }
  expect(await ask(bed.connect(), { path, host, headers })).toContain(why)
  expect(seen).toHaveLength(before)
  expect(bed.news).toMatchObject([{ outcome: 'secret', target: host }])
  // What needs none is not held up.
  expect(await ask(bed.connect(), { path, host })).toContain('plain says hello')
})
