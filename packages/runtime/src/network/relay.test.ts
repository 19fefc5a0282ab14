import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTcp, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { compilePolicy } from './policy.ts'
import {
  connectBy,
  listening,
  readAll,
  readExactly,
  relayBed,
  shoutingServer,
} from './testing/relay-bed.ts'

const closing: { close(): unknown; closeAllConnections?(): void }[] = []

afterEach(() => {
  for (const server of closing.splice(0)) {
    server.closeAllConnections?.()
    server.close()
  }
})

async function shouting() {
  const server = await shoutingServer()
  closing.push(server)
  return server
}

async function web(answer: (request: IncomingMessage) => string = () => 'hello') {
  const server = await listening(createServer((request, response) => response.end(answer(request))))
  closing.push(server)
  return server
}

const NAMED = (port: number) => ({ allow: [`127.0.0.1:${port}`] })

describe('CONNECT', () => {
  test('joins both directions, each with its own end', async () => {
    const { port } = await shouting()
    const bed = relayBed(NAMED(port))
    const { inside, status } = await connectBy(bed, `127.0.0.1:${port}`)
    expect(status).toBe('HTTP/1.1 200')
    inside.write('hello ')
    inside.end('there ')
    expect(await readAll(inside)).toMatch(/\r\n\r\nHELLO THERE BYE$/)
    await expect.poll(() => bed.relay.connections).toBe(0)
    expect(bed.news).toMatchObject([
      { target: `127.0.0.1:${port}`, protocol: 'connect', outcome: 'allowed' },
    ])
    expect(bed.relay.bytes).toBe(2 * 'hello there '.length + 'BYE'.length)
  })

  test('what comes right behind the request is not lost', async () => {
    const { port } = await shouting()
    const inside = relayBed(NAMED(port)).connect()
    inside.end(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\nearly`)
    expect(await readAll(inside)).toMatch(/\r\n\r\nEARLYBYE$/)
  })

  test('a refusal names the host and how to allow it', async () => {
    const bed = relayBed('none')
    const inside = bed.connect()
    inside.write('CONNECT pypi.example:443 HTTP/1.1\r\n\r\n')
    const said = await readAll(inside)
    expect(said).toMatch(
      /^HTTP\/1.1 403 Forbidden by network policy: pypi.example is not in its allow\r\n/,
    )
    expect(said).toContain('pypi.example:443 is not allowed')
    expect(said).toContain("network: { allow: ['pypi.example'] }")
    expect(said).toContain("'none'")
    expect(bed.resolved).toEqual([])
    expect(bed.news).toMatchObject([{ target: 'pypi.example:443', outcome: 'not_allowed' }])
  })

  test('a name that leads to a private address is refused, whatever else it leads to', async () => {
    const { port } = await shouting()
    const names = { 'a.example': ['127.0.0.1', '169.254.169.254', '::1', '10.0.0.1'] }
    const bed = relayBed({ allow: [`a.example:${port}`] }, { names })
    const inside = bed.connect()
    inside.write(`CONNECT a.example:${port} HTTP/1.1\r\n\r\n`)
    const said = await readAll(inside)
    expect(said).toMatch(
      /^HTTP\/1.1 403 .*: it leads to a private address, and 127.0.0.1:\d+ is not in its allow\r\n/,
    )
    expect(said).toContain(
      `a.example:${port} leads to 127.0.0.1, a private address or one of the machine`,
    )
    expect(bed.news).toMatchObject([{ outcome: 'private_address' }])
  })

  test('a name is resolved once, and what was looked at is dialled', async () => {
    const { port } = await shouting()
    // Looked at with the first answer, dialled with the second, it would lead to the machine itself.
    const bed = relayBed(
      { allow: [`a.example:${port}`] },
      { names: { 'a.example': ['192.0.2.1'] } },
    )
    const inside = bed.connect()
    inside.write(`CONNECT a.example:${port} HTTP/1.1\r\n\r\n`)
    await readAll(inside)
    expect(bed.resolved).toEqual(['a.example'])
  })

  test('a name without an address, a port where nobody is, a request that is none', async () => {
    const server = await shouting()
    server.close()
    const policy = { allow: ['a.example', `127.0.0.1:${server.port}`] }
    for (const [authority, status] of [
      ['a.example:443', 502],
      [`127.0.0.1:${server.port}`, 502],
      ['nonsense', 400],
    ] as const) {
      expect((await connectBy(relayBed(policy), authority)).status).toBe(`HTTP/1.1 ${status}`)
    }
  })
})

describe('HTTP', () => {
  test('passes requests on, several on one connection, without headers of the hop', async () => {
    const seen: IncomingMessage[] = []
    const { port } = await web((request) => {
      seen.push(request)
      return `${request.method} ${request.url}`
    })
    const bed = relayBed(NAMED(port))
    const inside = bed.connect()
    const headers = 'Host: other.example\r\nProxy-Authorization: secret\r\nX-Mine: 1\r\n'
    inside.write(`GET http://127.0.0.1:${port}/a?b HTTP/1.1\r\n${headers}\r\n`)
    const last = 'Content-Length: 3\r\nConnection: close\r\n'
    inside.write(`POST http://127.0.0.1:${port}/c HTTP/1.1\r\n${headers}${last}\r\nxyz`)
    const said = await readAll(inside)
    expect(said).toContain('GET /a?b')
    expect(said).toContain('POST /c')
    expect(seen[0]?.headers).toMatchObject({ host: `127.0.0.1:${port}`, 'x-mine': '1' })
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization')
  })

  test('a refused request is answered 403, and the connection lives on', async () => {
    const { port } = await web()
    const bed = relayBed(NAMED(port))
    const inside = bed.connect()
    inside.write('GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n')
    inside.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const said = await readAll(inside)
    expect(said).toMatch(/^HTTP\/1.1 403 [\s\S]*example.org:80 is not allowed[\s\S]*HTTP\/1.1 200 /)
  })

  test('the host of the address counts, not that of a header', async () => {
    const bed = relayBed({ allow: ['good.example'] })
    const inside = bed.connect()
    inside.write('GET http://bad.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n')
    expect((await readExactly(inside, 12)).toString()).toBe('HTTP/1.1 403')
    expect(bed.news).toMatchObject([{ target: 'bad.example:80' }])
  })

  test('a redirect is a request of its own', async () => {
    const server = await listening(
      createServer((_, response) => {
        response.writeHead(302, { location: 'http://169.254.169.254/latest/' }).end()
      }),
    )
    closing.push(server)
    const bed = relayBed(NAMED(server.port))
    const inside = bed.connect()
    inside.write(`GET http://127.0.0.1:${server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
    inside.write(
      'GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    )
    expect(await readAll(inside)).toMatch(/^HTTP\/1.1 302 [\s\S]*HTTP\/1.1 403 /)
  })

  test('an answer that is cut off does not look whole', async () => {
    const server = await listening(
      createTcp((socket) => {
        socket.on('error', () => {})
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', () => socket.destroy())
        })
      }),
    )
    closing.push(server)
    const inside = relayBed(NAMED(server.port)).connect()
    inside.write(`GET http://127.0.0.1:${server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
    await once(inside, 'close')
  })

  test.each([
    ['200 odd \x01\x7f', 'HTTP/1.1 200 odd   \r\n'],
    ['000 none', 'HTTP/1.1 502 '],
    ['101 other\r\nUpgrade: x\r\nConnection: upgrade', 'HTTP/1.1 502 '],
    ['101 other', 'HTTP/1.1 502 '],
  ])('whatever a server answers harms nobody: %j', async (answer, shown) => {
    const server = await listening(
      createTcp((socket) => {
        socket.on('error', () => {})
        socket.once('data', () => socket.end(`HTTP/1.1 ${answer}\r\nContent-Length: 2\r\n\r\nok`))
      }),
    )
    closing.push(server)
    const inside = relayBed(NAMED(server.port)).connect()
    inside.write(`GET http://127.0.0.1:${server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect((await readExactly(inside, shown.length)).toString()).toBe(shown)
  })

  test.each(['GET / HTTP/1.1', 'GET https://example.org/ HTTP/1.1', 'GET ftp://a/ HTTP/1.1'])(
    '%s is told what this is',
    async (line) => {
      const inside = relayBed('none').connect()
      inside.write(`${line}\r\nHost: a\r\nConnection: close\r\n\r\n`)
      expect(await readAll(inside)).toMatch(/^HTTP\/1.1 400 [\s\S]*this is a proxy/)
    },
  )

  test('noise is answered 400', async () => {
    const inside = relayBed('none').connect()
    inside.write('\0\x01\x02 what\r\n\r\n')
    expect(await readAll(inside)).toMatch(/^HTTP\/1.1 400 /)
  })
})

describe('SOCKS 5', () => {
  const GREETING = Buffer.of(5, 2, 1, 0)
  const request = (kind: number, host: Buffer, port: number, command = 1) =>
    Buffer.concat([Buffer.of(5, command, 0, kind), host, Buffer.of(port >> 8, port & 255)])
  const named = (name: string) => Buffer.concat([Buffer.of(name.length), Buffer.from(name)])

  async function socks(bed: ReturnType<typeof relayBed>, asked: Buffer) {
    const inside = bed.connect()
    // Byte by byte: no message need come whole.
    for (const byte of GREETING) inside.write(Buffer.of(byte))
    expect([...(await readExactly(inside, 2))]).toEqual([5, 0])
    for (const byte of asked) inside.write(Buffer.of(byte))
    const [, code] = await readExactly(inside, 10)
    return { inside, code }
  }

  test('joins by address, by name, by IPv6', async () => {
    const { port } = await shouting()
    const mapped = Buffer.concat([Buffer.alloc(10), Buffer.of(255, 255, 127, 0, 0, 1)])
    for (const asked of [
      request(1, Buffer.of(127, 0, 0, 1), port),
      request(3, named('127.0.0.1'), port),
      request(4, mapped, port),
    ]) {
      const { inside, code } = await socks(relayBed(NAMED(port)), asked)
      expect(code).toBe(0)
      inside.end('hi ')
      expect(await readAll(inside)).toBe('HI BYE')
    }
  })

  test.each([
    ['a name that is not allowed', request(3, named('example.org'), 443), 2],
    ['a name that leads inside', request(3, named('in.example'), 443), 2],
    ['an unknown name', request(3, named('gone.example'), 443), 4],
    ['no name', request(3, named(''), 443), 1],
    ['BIND', request(1, Buffer.of(1, 1, 1, 1), 443, 2), 7],
    ['an address of no kind', request(9, Buffer.of(), 443), 8],
  ])('%s has its answer', async (_, asked, code) => {
    const names = { 'in.example': ['10.0.0.1'] }
    const bed = relayBed({ allow: ['in.example', 'gone.example'] }, { names })
    expect((await socks(bed, asked)).code).toBe(code)
  })

  test('a client that wants a password is refused', async () => {
    const inside = relayBed('none').connect()
    inside.write(Buffer.of(5, 1, 2))
    expect([...Buffer.from(await readAll(inside), 'latin1')].slice(0, 1)).toEqual([5])
  })
})

describe('a policy that changes', () => {
  test('closes what it refuses, and leaves the rest', async () => {
    const [one, two] = [await shouting(), await shouting()]
    const bed = relayBed({ allow: [`127.0.0.1:${one.port}`, `127.0.0.1:${two.port}`] })
    const first = await connectBy(bed, `127.0.0.1:${one.port}`)
    const second = await connectBy(bed, `127.0.0.1:${two.port}`)
    bed.relay.setPolicy(compilePolicy(NAMED(two.port), []))
    await once(first.inside.resume(), 'close')
    second.inside.end('still ')
    expect(await readAll(second.inside)).toMatch(/STILL BYE$/)
    expect((await connectBy(bed, `127.0.0.1:${one.port}`)).status).toBe('HTTP/1.1 403')
  })

  test('closeAll closes what is open; new connections are taken', async () => {
    const { port } = await shouting()
    const bed = relayBed(NAMED(port))
    const { inside } = await connectBy(bed, `127.0.0.1:${port}`)
    bed.relay.closeAll()
    await once(inside.resume(), 'close')
    expect((await connectBy(bed, `127.0.0.1:${port}`)).status).toBe('HTTP/1.1 200')
  })
})

test('the machine’s own proxy is asked for what the machine takes packages from', async () => {
  const { port } = await shouting()
  const asked: string[] = []
  const proxy = createServer()
  proxy.on('connect', (request, socket: Socket) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization']}`)
    socket.end('HTTP/1.1 200 OK\r\n\r\nearly words')
  })
  const { port: proxyPort } = await listening(proxy)
  closing.push(proxy)
  const bed = relayBed(
    { allow: [`127.0.0.1:${port}`], packages: true },
    {
      mirrors: [{ host: 'mirror.example', port: 443 }],
      upstream: new URL(`http://me:word@127.0.0.1:${proxyPort}`),
    },
  )
  const { inside } = await connectBy(bed, 'mirror.example:443')
  expect(await readAll(inside)).toMatch(/early words$/)
  expect(asked).toEqual(['mirror.example:443 Basic bWU6d29yZA=='])
  // Everything else goes its direct way.
  expect((await connectBy(bed, `127.0.0.1:${port}`)).status).toBe('HTTP/1.1 200')
  expect(asked).toHaveLength(1)
})
