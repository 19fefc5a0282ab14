/** Where a connection may lead, whatever spelling, name or proxy leads there. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MachineNames } from './names.ts'
import { nameServer } from './testing/name-server.ts'
import { connectBy, listening, readAll, relayBed } from './testing/relay-bed.ts'

const NAMES = { allow: ['*.example', '*.example:8080'] }

/** An address, and how else it is written. */
const FORBIDDEN = [
  ...['0.0.0.0', '127.0.0.1', '127.8.9.1', '10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1'],
  ...[
    '169.254.169.254',
    '168.63.129.16',
    '192.0.2.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
  ],
  ...['::', '::1', 'fe80::1', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '2001:db8::1'],
  ...['::ffff:127.0.0.1', '::ffff:169.254.169.254', '::ffff:0.0.0.0', '::127.0.0.1'],
  ...['64:ff9b::7f00:1', '2002:7f00:1::', '2001:0:7f00:1::'],
]

const SPELLINGS = [
  ...['127.1:80', '2130706433:80', '0x7f.0.0.1:80', '0177.0.0.1:80', '0:80', 'localhost:80'],
  ...['[::ffff:7f00:1]:80', '[0:0:0:0:0:0:0:1]:80', '[0::0]:80', '127.0.0.1.:80'],
]

describe('an address that no policy names', () => {
  test.each([
    ...FORBIDDEN.map((address) => (address.includes(':') ? `[${address}]:80` : `${address}:80`)),
    ...SPELLINGS,
  ])('%s is refused', async (authority) => {
    const bed = relayBed(NAMES)
    expect((await connectBy(bed, authority)).status).toBe('HTTP/1.1 403')
    const plain = bed.connect()
    plain.write(`GET http://${authority}/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`)
    expect(await readAll(plain)).toMatch(/^HTTP\/1.1 403 /)
    expect(bed.news.map(({ outcome }) => outcome)).toEqual(['not_allowed', 'not_allowed'])
    expect(bed.resolved).toEqual([])
  })
})

describe('a name that is allowed', () => {
  test.each(FORBIDDEN)('does not lead to %s', async (address) => {
    const bed = relayBed(NAMES, { names: { 'a.example': [address] } })
    expect((await connectBy(bed, 'a.example:443')).status).toBe('HTTP/1.1 403')
    expect(bed.news).toMatchObject([{ outcome: 'private_address' }])
  })

  test('leads to what was looked at, and not to what the name says a moment later', async () => {
    const answers = [['127.0.0.1', '192.0.2.7'], ['127.0.0.1']]
    const attempts: string[] = []
    const watched = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      socket.on('connectionAttempt', (address) => {
        attempts.push(address)
        setImmediate(() => socket.destroy())
      })
    }
    subscribe('net.client.socket', watched)
    try {
      // Mirrors may be in the machine's network, but not on itself.
      const bed = relayBed('packages', {
        mirrors: [{ host: 'mirror.example', port: 443 }],
        resolve: async () =>
          (answers.shift() ?? []).map((address) => ({ address, family: 4 as const })),
      })
      expect((await connectBy(bed, 'mirror.example:443')).status).toBe('HTTP/1.1 502')
      expect(attempts).toEqual(['192.0.2.7'])
      expect(bed.resolved).toEqual(['mirror.example'])
      // Asked again, it is looked at again.
      expect((await connectBy(bed, 'mirror.example:443')).status).toBe('HTTP/1.1 403')
      expect(attempts).toEqual(['192.0.2.7'])
    } finally {
      unsubscribe('net.client.socket', watched)
    }
  })
})

describe('a network that is allowed', () => {
  test.each([
    ['0.0.0.0/0:*', '127.0.0.1:80'],
    ['0.0.0.0/0:*', '169.254.169.254:80'],
    ['0.0.0.0/0:*', '168.63.129.16:80'],
    ['[::/0]:*', '[::1]:80'],
    ['[::/0]:*', '[fe80::1]:80'],
    ['[fd00::/8]:*', '[fd00:ec2::254]:80'],
    ['[64:ff9b::/96]:*', '[64:ff9b::a9fe:a9fe]:80'],
    ['[2002::/16]:*', '[2002:7f00:1::]:80'],
  ])('%s does not lead to %s', async (entry, authority) => {
    const bed = relayBed({ allow: [entry] })
    const inside = bed.connect()
    inside.write(`CONNECT ${authority} HTTP/1.1\r\n\r\n`)
    const said = await readAll(inside)
    expect(said).toMatch(/^HTTP\/1.1 403 [\s\S]*A network is not enough for it/)
    expect(bed.news).toMatchObject([{ outcome: 'private_address' }])
  })
})

test('a name server that says another address each time is asked once for a connection', async () => {
  const answers = ['93.184.216.34', '127.0.0.1', '10.0.0.1']
  let asked = 0
  await using server = await nameServer(() => [answers[asked++ % answers.length] ?? ''])
  // No question is repeated because this process, and with it the server, stood still.
  const names = new MachineNames({ servers: [server.address], serverMs: 60_000 })
  const dialled: string[] = []
  const watched = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    socket.on('connectionAttempt', (address) => {
      dialled.push(address)
      setImmediate(() => socket.destroy())
    })
  }
  subscribe('net.client.socket', watched)
  try {
    const statuses: string[] = []
    for (let at = 0; at < 6; at += 1) {
      const bed = relayBed(NAMES, { resolve: names.resolve.bind(names) })
      statuses.push((await connectBy(bed, 'rebinds.example:443')).status.slice(9))
    }
    expect(new Set(dialled)).toEqual(new Set(['93.184.216.34']))
    expect(statuses).toContain('403')
    // One question for each kind of address and connection.
    expect(asked).toBe(12)
  } finally {
    unsubscribe('net.client.socket', watched)
  }
})

test('a redirect to a private address is an answer like any other, and its target is refused', async () => {
  const location = 'http://169.254.169.254/latest/'
  await using server = await listening(
    createServer((_, response) => response.writeHead(302, { location }).end()),
  )
  const bed = relayBed({ allow: [`127.0.0.1:${server.port}`] })
  const ask = async (address: string) => {
    const inside = bed.connect()
    inside.write(`GET ${address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    return await readAll(inside)
  }
  expect(await ask(`http://127.0.0.1:${server.port}/`)).toMatch(/^HTTP\/1.1 302 /)
  expect(await ask(location)).toMatch(/^HTTP\/1.1 403 /)
  expect(bed.news.map(({ outcome }) => outcome)).toEqual(['allowed', 'not_allowed'])
})

test('a name that is not allowed is never asked for: nothing leaves in questions to a name server', async () => {
  await using server = await nameServer(() => ['93.184.216.34'])
  const names = new MachineNames({ servers: [server.address] })
  const bed = relayBed(
    { allow: ['93.184.216.34', '*.example'] },
    { resolve: names.resolve.bind(names) },
  )
  for (const name of ['secret-bits.evil.test', 'example', 'a.example.evil.test']) {
    expect((await connectBy(bed, `${name}:443`)).status).toBe('HTTP/1.1 403')
  }
  expect(server.asked).toEqual(new Set())
})

test.each([
  'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n',
])('the machine’s own proxy leads nowhere else by its answer: %j', async (answer) => {
  const asked: string[] = []
  const server = createServer()
  server.on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    socket.end(answer)
  })
  await using proxy = await listening(server)
  const bed = relayBed('packages', {
    mirrors: [{ host: 'mirror.example', port: 443 }],
    upstream: new URL(`http://proxy.corp:${proxy.port}`),
    names: { 'proxy.corp': ['127.0.0.1'] },
  })
  const inside = bed.connect()
  inside.write('CONNECT mirror.example:443 HTTP/1.1\r\n\r\n')
  const status = answer.slice(9, 12)
  expect(await readAll(inside)).toMatch(new RegExp(`^HTTP/1.1 502 [^]*proxy answers ${status}`))
  expect(asked).toEqual(['mirror.example:443'])
  expect(bed.resolved).toEqual(['proxy.corp'])
})
