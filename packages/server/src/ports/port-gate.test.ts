import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { portUrl } from '@sandlot/protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { httpServer, servedBy } from '../testing/port-server.ts'
import { until } from '../testing/until.ts'

const PORT = 8_000

/** What the server in the sandbox does with the next requests. */
let onRequest: Parameters<typeof httpServer>[0]
const server = httpServer((incoming, outgoing) => onRequest(incoming, outgoing))
let at: TestDaemon
let sandbox: string
let prefix: string

beforeAll(async () => {
  at = await startTestDaemon({ script: servedBy(server, PORT) })
  const { id } = await at.sandbox()
  sandbox = id
  prefix = `/v1/sandboxes/${id}/ports/${PORT}`
  // Until the daemon ends.
  at.exec(id, ['serve']).catch(() => {})
  await until(async () => (await at.ask('GET', `/v1/sandboxes/${id}/ports`)).text.includes('8000'))
})
afterAll(() => at[Symbol.asyncDispose]())
beforeEach(() => {
  onRequest = (incoming, outgoing) => {
    const { method, url, headers } = incoming
    outgoing.end(JSON.stringify({ method, url, headers }))
  }
})

async function urlOf(more: Record<string, unknown> = {}) {
  const json = { port: PORT, ...more }
  return portUrl.parse((await at.ask('POST', `/v1/sandboxes/${sandbox}/ports/url`, { json })).json)
}

/** A request by the name that a browser would resolve by itself. */
async function byName(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const { host, pathname, search } = new URL(url)
  const asked = request(at.url, { method, path: pathname + search, headers: { host, ...headers } })
  const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage]
  const text = Buffer.concat(await Array.fromAsync(answer)).toString()
  return { status: answer.statusCode, headers: answer.headers, text }
}

describe('a request to a port', () => {
  test('finds the server at localhost, without the key, whatever its method', async () => {
    for (const method of ['GET', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
      const reply = await at.ask(method, `${prefix}/a%20b/?c=d`, {
        headers: { cookie: 'a=b', 'x-own': 'kept', 'x-forwarded-for': '10.0.0.1' },
      })
      const seen = JSON.parse(reply.text)
      expect(seen).toMatchObject({ method, url: '/a%20b/?c=d' })
      expect(seen.headers).toMatchObject({
        host: `localhost:${PORT}`,
        'x-own': 'kept',
        'x-forwarded-host': new URL(at.url).host,
        'x-forwarded-prefix': prefix,
      })
      for (const name of ['authorization', 'cookie', 'x-forwarded-for']) {
        expect(seen.headers).not.toHaveProperty(name)
      }
    }
    expect(JSON.parse((await at.ask('GET', prefix)).text).url).toBe('/')
  })

  test('carries bodies both ways, of a known length and without', async () => {
    onRequest = (incoming, outgoing) => {
      outgoing.writeHead(201, { 'x-length': incoming.headers['content-length'] ?? 'none' })
      incoming.pipe(outgoing)
    }
    const body = Buffer.alloc(3_000_000, 'x')
    const known = await at.fetch('POST', `${prefix}/`, { body })
    expect([known.status, known.headers.get('x-length')]).toEqual([201, '3000000'])
    expect(Buffer.from(await known.arrayBuffer()).equals(body)).toBe(true)
    const stream = ReadableStream.from([Buffer.from('one '), Buffer.from('two')])
    const unknown = await at.fetch('PUT', `${prefix}/`, { body: stream })
    expect([unknown.headers.get('x-length'), await unknown.text()]).toEqual(['none', 'one two'])
  })

  test('gets events as they are sent, and its end is heard inside', async () => {
    const left = Promise.withResolvers<void>()
    let say: (text: string) => void = () => {}
    onRequest = (_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      say = (text) => void outgoing.write(`data: ${text}\n\n`)
      outgoing.on('close', () => left.resolve())
    }
    const leaving = new AbortController()
    const answer = await at.fetch('GET', `${prefix}/events`, { signal: leaving.signal })
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
    for (const text of ['one', 'two']) {
      say(text)
      expect((await reader?.read())?.value).toBe(`data: ${text}\n\n`)
    }
    leaving.abort()
    await left.promise
  })

  test('of a server that says more than it may is cut down to what is its own', async () => {
    onRequest = ({ url }, outgoing) => {
      outgoing.writeHead(url === '/' ? 302 : 200, {
        location: `http://localhost:${PORT}/next?a=b`,
        'set-cookie': 'a=b; Path=/',
        'clear-site-data': '"*"',
        'strict-transport-security': 'max-age=1',
        'service-worker-allowed': '/',
        'sandlot-error': 'sandbox_gone',
      })
      outgoing.end()
    }
    const answer = await at.fetch('GET', `${prefix}/`)
    expect(answer.url).toBe(`${at.url}${prefix}/next?a=b`)
    const raw = await byName(`${at.url}${prefix}/`, { authorization: `Bearer ${at.daemon.apiKey}` })
    expect(raw.headers).toMatchObject({
      location: `${prefix}/next?a=b`,
      'content-security-policy': expect.stringContaining('sandbox'),
      'referrer-policy': 'same-origin',
    })
    for (const name of [
      ...['set-cookie', 'clear-site-data', 'strict-transport-security'],
      ...['service-worker-allowed', 'sandlot-error'],
    ]) {
      expect(raw.headers).not.toHaveProperty(name)
    }
  })
})

describe('a URL of a port', () => {
  test('leads any program there without a key, by path and by a name of its own', async () => {
    const { url, originUrl, expiresAtMs } = await urlOf({ path: '/a?b=c', expires: '2h' })
    expect(url.startsWith(`${at.url}/p/8000-${sandbox.slice(3)}-`)).toBe(true)
    expect(expiresAtMs).toBeLessThanOrEqual(Date.now() + 7_200_000)
    const plain = JSON.parse(await (await fetch(url)).text())
    expect(plain).toMatchObject({ url: '/a?b=c' })
    expect(new URL(originUrl ?? '').hostname).toMatch(/^[a-z0-9-]{1,63}\.localhost$/)
    const own = await byName(originUrl ?? '', {
      cookie: 'a=b',
      origin: new URL(originUrl ?? '').origin,
      referer: originUrl ?? '',
      authorization: 'Basic YTpi',
    })
    expect(JSON.parse(own.text)).toMatchObject({
      url: '/a?b=c',
      headers: {
        ...{ cookie: 'a=b', origin: `http://localhost:${PORT}`, authorization: 'Basic YTpi' },
        referer: `http://localhost:${PORT}/a?b=c`,
      },
    })
    expect(own.headers).not.toHaveProperty('content-security-policy')
  })

  test('opened in a browser it leads to the name, where cookies are the server’s', async () => {
    const { url, originUrl } = await urlOf({ path: '/a' })
    const led = await byName(url, { 'sec-fetch-mode': 'navigate' })
    expect([led.status, led.headers.location]).toEqual([307, originUrl])
    const tunnel = await byName(url, { 'sec-fetch-mode': 'navigate', host: 'localhost:9999' })
    expect(tunnel.headers.location).toBe(originUrl?.replace(/:\d+/, ':9999'))
    onRequest = (_, outgoing) => {
      outgoing.setHeader('set-cookie', ['a=b; Domain=localhost; Path=/', 'c=d'])
      outgoing.setHeader('access-control-allow-origin', `http://localhost:${PORT}`)
      outgoing.setHeader('location', '/next')
      outgoing.end()
    }
    const { origin } = new URL(originUrl ?? '')
    const answer = await byName(originUrl ?? '', { origin })
    expect(answer.headers).toMatchObject({
      'set-cookie': ['a=b; Path=/', 'c=d'],
      'access-control-allow-origin': origin,
      location: '/next',
    })
  })

  test('a key of the daemon stays outside where it is sent by mistake', async () => {
    const { url } = await urlOf()
    const reply = await at.ask('GET', new URL(url).pathname)
    expect(JSON.parse(reply.text).headers).not.toHaveProperty('authorization')
  })

  test('that is changed, or of another daemon, or over, says so', async () => {
    const { url } = await urlOf()
    const token = url.split('/p/')[1]?.slice(0, -1) ?? ''
    const other = token.replace('8000-', '8001-')
    const changed = `${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`
    const longer = token.replace(/-([a-z0-9]+)-([a-z2-7]+)$/, (_, end, mac) => {
      return `-${(Number.parseInt(end, 36) + 60).toString(36)}-${mac}`
    })
    for (const bad of [other, changed, longer, 'x', `${token}a`, token.toUpperCase()]) {
      expect(await at.ask('GET', `/p/${bad}/`, { key: null })).toMatchObject({
        ...{ status: 401, code: 'token_invalid' },
      })
      const named = await byName(`http://${bad}.localhost/`)
      expect(named.status).toBe(bad === token.toUpperCase() ? 200 : 401)
    }
    const past = token.replace(/-([a-z0-9]+)-([a-z2-7]+)$/, (_, __, mac) => `-t3sk80-${mac}`)
    const over = await at.ask('GET', `/p/${past}/`, { key: null })
    expect(over).toMatchObject({ status: 401, code: 'token_expired' })
    expect(over.headers.get('sandlot-error')).toBe('token_expired')
  })

  test('ends with its key', async () => {
    const made = await at.ask('POST', '/v1/keys', { json: { scope: 'run' } })
    const { id, key } = made.json as { id: string; key: string }
    const json = { port: PORT }
    const reply = await at.ask('POST', `/v1/sandboxes/${sandbox}/ports/url`, { json, key })
    const { url } = portUrl.parse(reply.json)
    expect((await fetch(url)).status).toBe(200)
    await at.ask('DELETE', `/v1/keys/${id}`)
    expect((await fetch(url)).status).toBe(401)
  })

  test('is asked for within bounds', async () => {
    const ask = async (json: Record<string, unknown>, id = sandbox) =>
      (await at.ask('POST', `/v1/sandboxes/${id}/ports/url`, { json })).code
    for (const bad of [
      ...[{}, { port: 0 }, { port: 65_536 }, { port: '8000' }, { port: 61_080 }],
      ...[
        { port: 1, expires: '8d' },
        { port: 1, expires: '0s' },
        { port: 1, path: 'a' },
      ],
      ...[
        { port: 1, path: '/a b' },
        { port: 1, more: 1 },
      ],
    ]) {
      expect(await ask(bad), JSON.stringify(bad)).toBe('invalid_request')
    }
    expect(await ask({ port: 1 }, `sb_${'a'.repeat(20)}`)).toBe('sandbox_unknown')
  })
})

describe('a WebSocket', () => {
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (incoming, connection, head) => {
    if (incoming.url === '/refused') return void connection.end('HTTP/1.1 403 No\r\n\r\nno')
    sockets.handleUpgrade(incoming, connection, head, (socket) => {
      socket.send(JSON.stringify({ headers: incoming.headers, url: incoming.url }))
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
      socket.on('close', (code) => closedWith.push(code))
    })
  })
  const closedWith: number[] = []

  test('is joined with the server’s, by a URL and by a key', async () => {
    const { url } = await urlOf({ path: '/echo' })
    const authorization = `Bearer ${at.daemon.apiKey}`
    for (const [place, headers] of [
      [url, { origin: at.url }],
      [`${at.url}${prefix}/echo`, { authorization }],
    ] as const) {
      const socket = new WebSocket(place.replace('http', 'ws'), { headers })
      const [first] = await once(socket, 'message')
      const seen = JSON.parse(String(first))
      expect(seen).toMatchObject({ url: '/echo', headers: { host: `localhost:${PORT}` } })
      expect(seen.headers).not.toHaveProperty('authorization')
      if ('origin' in headers) expect(seen.headers.origin).toBe(`http://localhost:${PORT}`)
      const sent = Buffer.alloc(1_000_000, 'y')
      socket.send(sent)
      const [echoed] = await once(socket, 'message')
      expect(sent.equals(echoed as Buffer)).toBe(true)
      socket.close(4_001)
      await once(socket, 'close')
      await expect.poll(() => closedWith.pop()).toBe(4_001)
    }
  })

  test('that is refused has the server’s answer, or why there is none', async () => {
    const answerAt = async (place: string) => {
      const socket = new WebSocket(place.replace('http', 'ws'))
      const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
      socket.on('error', () => {}).terminate()
      return [answer.statusCode, answer.headers['sandlot-error']]
    }
    expect(await answerAt((await urlOf({ path: '/refused' })).url)).toEqual([403, undefined])
    const { url } = await urlOf({ port: 8_001 })
    expect(await answerAt(url)).toEqual([502, 'port_refused'])
    expect(await answerAt(`${at.url}/p/none/`)).toEqual([401, 'token_invalid'])
  })
})

describe('what goes wrong', () => {
  test('nothing listens: what does is said', async () => {
    const reply = await at.ask('GET', `/v1/sandboxes/${sandbox}/ports/8001/`)
    expect(reply).toMatchObject({ status: 502, code: 'port_refused' })
    expect(reply.json).toMatchObject({
      error: { hint: expect.stringContaining('8000'), details: { listening: [8_000] } },
    })
  })

  test('who may not ask, and what is no port, is told before anything is asked inside', async () => {
    const of = (port: number | string) => `/v1/sandboxes/${sandbox}/ports/${port}/`
    expect(await at.ask('GET', of(PORT), { key: null })).toMatchObject({ code: 'unauthorized' })
    expect(
      await at.ask('GET', of(PORT), { headers: { origin: 'http://evil.example' } }),
    ).toMatchObject({ code: 'forbidden' })
    for (const port of [0, 65_536, 999_999_999, 61_080]) {
      expect(await at.ask('GET', of(port)), `${port}`).toMatchObject({
        ...{ status: 400, code: 'invalid_request' },
      })
    }
    expect(await at.ask('GET', of('x'))).toMatchObject({ code: 'route_unknown' })
    const nobody = `/v1/sandboxes/sb_${'a'.repeat(20)}/ports/1/`
    expect(await at.ask('GET', nobody)).toMatchObject({ code: 'sandbox_unknown' })
    expect(await at.ask('GET', '/v1/sandboxes/x/ports/1/')).toMatchObject({ status: 404 })
  })

  test('an answer that breaks off never looks whole', async () => {
    onRequest = (_, outgoing) => {
      outgoing.writeHead(200, { 'content-length': 100 })
      outgoing.write('half', () => outgoing.destroy())
    }
    await expect(at.fetch('GET', `${prefix}/`).then((each) => each.text())).rejects.toThrow()
  })

  test('an answer that is as long as its connection is whole where that ends, not where it is lost', async () => {
    let isLost = false
    onRequest = (_, outgoing) => {
      Object.assign(outgoing, { shouldKeepAlive: false, useChunkedEncodingByDefault: false })
      outgoing.write('half', () =>
        isLost ? outgoing.socket?.destroy() : outgoing.end(' and half'),
      )
    }
    const said = async () => await (await at.fetch('GET', `${prefix}/`)).text()
    expect(await said()).toBe('half and half')
    isLost = true
    await expect(said()).rejects.toThrow()
  })

  test('the root of a server has its slash, or relative addresses of its pages would lead elsewhere', async () => {
    onRequest = ({ url, method }, outgoing) => outgoing.end(`${method} ${url}`)
    const answer = await at.fetch('GET', `${prefix}?a=b`)
    expect([answer.url, await answer.text()]).toEqual([`${at.url}${prefix}/?a=b`, 'GET /?a=b'])
    expect(await (await at.fetch('POST', prefix)).text()).toBe('POST /')
  })

  test('a server that answers early and reads no more is heard', async () => {
    onRequest = (_, outgoing) => {
      outgoing.writeHead(413, { connection: 'close' }).end('too much')
    }
    const body = Buffer.alloc(5_000_000)
    const answer = await at.fetch('POST', `${prefix}/`, { body })
    expect([answer.status, await answer.text()]).toEqual([413, 'too much'])
  })

  test('a connection that a server drops while it is kept costs a request nothing', async () => {
    const drops = new Set<() => void>()
    onRequest = (incoming, outgoing) => {
      drops.add(() => incoming.socket.destroy())
      outgoing.end('ok')
    }
    for (let round = 0; round < 5; round++) {
      expect((await at.ask('GET', `${prefix}/`)).text).toBe('ok')
      for (const drop of drops) drop()
    }
  })
})
