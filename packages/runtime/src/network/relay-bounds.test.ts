import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { MachineNames } from './names.ts'
import { nameServer } from './testing/name-server.ts'
import { connectBy, readAll, relayBed, shoutingServer } from './testing/relay-bed.ts'

const closing: { close(): unknown }[] = []

afterEach(() => {
  for (const server of closing.splice(0)) server.close()
})

async function shouting() {
  const server = await shoutingServer()
  closing.push(server)
  return server
}

const NAMED = (port: number) => ({ allow: [`127.0.0.1:${port}`] })

describe('connections', () => {
  test('a connection that leaves without a request makes room at once', async () => {
    const bed = relayBed('none')
    const inside = bed.connect()
    inside.end()
    inside.resume()
    await expect.poll(() => bed.relay.connections).toBe(0)
  })

  const FULL = (port: number) => ({ ...NAMED(port), limits: { connections: 2 } })

  test('one beyond the bound is told so, whatever it speaks, and closed', async () => {
    const { port } = await shouting()
    const bed = relayBed(FULL(port), { limits: { refusals: 3 } })
    const kept = await connectBy(bed, `127.0.0.1:${port}`)
    const idle = bed.connect()
    const tunnel = bed.connect()
    tunnel.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)
    expect(await readAll(tunnel)).toMatch(
      /^HTTP\/1.1 503 Too many connections\r\n[\s\S]*2 connections of this sandbox are open/,
    )
    const plain = bed.connect()
    plain.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect(await readAll(plain)).toMatch(/^HTTP\/1.1 503 [\s\S]*Connection: close/i)
    const socks = bed.connect()
    socks.write(Buffer.of(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, port >> 8, port & 255))
    expect([...Buffer.from(await readAll(socks), 'latin1')].slice(0, 4)).toEqual([5, 0, 5, 1])
    expect(bed.news.slice(1)).toMatchObject(
      ['connect', 'http', 'socks'].map((protocol) => ({ protocol, outcome: 'limit' })),
    )
    expect([kept.inside.destroyed, idle.destroyed]).toEqual([false, false])
    // A place that is free again is taken.
    for (const each of [tunnel, plain, socks, idle]) each.end()
    idle.resume()
    await expect.poll(() => bed.relay.connections).toBe(1)
    expect((await connectBy(bed, `127.0.0.1:${port}`)).status).toBe('HTTP/1.1 200')
  })

  test('one that was turned away and says nothing does not hold its place', async () => {
    const bed = relayBed(FULL(1), { limits: { refusals: 1, refusalMs: 10 } })
    const kept = [bed.connect(), bed.connect()]
    await once(bed.connect().resume(), 'close')
    expect(kept.map(({ destroyed }) => destroyed)).toEqual([false, false])
  })

  test('more than are told so are closed at once', async () => {
    const bed = relayBed(FULL(1), { limits: { refusals: 1 } })
    const kept = [bed.connect(), bed.connect(), bed.connect()]
    await once(bed.connect().resume(), 'close')
    expect(kept.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
  })

  test('a connection that asks for nothing is closed', async () => {
    const bed = relayBed('none', { limits: { requestMs: 10 } })
    await once(bed.connect().resume(), 'close')
    expect(bed.relay.connections).toBe(0)
  })

  test('one that was refused and stays is closed', async () => {
    const bed = relayBed('none', { limits: { requestMs: 10 } })
    const tunnel = bed.connect()
    tunnel.write('CONNECT a.example:443 HTTP/1.1\r\n\r\n')
    const socks = bed.connect()
    socks.write(Buffer.of(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80))
    await Promise.all([tunnel, socks].map((each) => once(each.resume(), 'close')))
    expect(bed.news).toMatchObject([{ outcome: 'not_allowed' }, { outcome: 'not_allowed' }])
    expect(bed.relay.connections).toBe(0)
  })

  test('one on which nothing moves is closed', async () => {
    const { port } = await shouting()
    const bed = relayBed(NAMED(port), { limits: { idleMs: 10 } })
    const { inside } = await connectBy(bed, `127.0.0.1:${port}`)
    await once(inside.resume(), 'close')
  })

  test('a dial that takes too long is answered 504', async () => {
    const names = { 'slow.example': 'never' } as const
    const bed = relayBed({ allow: ['slow.example'] }, { names, limits: { dialMs: 10 } })
    expect((await connectBy(bed, 'slow.example:443')).status).toBe('HTTP/1.1 504')
  })
})

describe('names', () => {
  const ask = (bed: ReturnType<typeof relayBed>, name: string) =>
    bed.connect().write(`CONNECT ${name}:443 HTTP/1.1\r\n\r\n`)

  test('500 slow ones of a sandbox delay neither another’s nor the files of the daemon', async () => {
    await using server = await nameServer((name) =>
      name.startsWith('slow') ? 'never' : ['10.0.0.1'],
    )
    const names = new MachineNames({ servers: [server.address] })
    const resolve = names.resolve.bind(names)
    const policy = { allow: ['*.example'] }
    const slow = relayBed({ ...policy, limits: { connections: 500 } }, { resolve })
    for (let at = 0; at < 500; at += 1) ask(slow, `slow${at}.example`)
    await expect.poll(() => server.asked.size).toBeGreaterThan(0)
    const other = relayBed(policy, { resolve })
    const inside = other.connect()
    inside.write('CONNECT fast.example:443 HTTP/1.1\r\n\r\n')
    expect(await readAll(inside)).toContain('fast.example:443 leads to 10.0.0.1')
    expect(await readFile('/etc/hosts', 'utf8')).toContain('localhost')
    expect(slow.news).toEqual([])
    slow.relay.closeAll()
    await expect.poll(() => slow.relay.connections).toBe(0)
  })

  test('so many of a sandbox are looked up at once, and the next when one is done', async () => {
    const waiting: (() => void)[] = []
    const bed = relayBed(
      { allow: ['*.example'] },
      {
        limits: { lookups: 2 },
        resolve: () => new Promise((resolve) => waiting.push(() => resolve([]))),
      },
    )
    for (const name of ['a', 'b', 'c']) ask(bed, `${name}.example`)
    await expect.poll(() => bed.resolved).toEqual(['a.example', 'b.example'])
    waiting.shift()?.()
    await expect.poll(() => bed.resolved).toEqual(['a.example', 'b.example', 'c.example'])
    expect(bed.news).toMatchObject([{ target: 'a.example:443', outcome: 'unresolved' }])
  })

  test('one without an answer in its time is answered 504, also where it waits for its turn', async () => {
    const names = { 'slow.example': 'never', 'next.example': 'never' } as const
    const limits = { lookups: 1, lookupMs: 10 }
    const bed = relayBed({ allow: ['*.example'] }, { names, limits })
    const both = ['slow.example', 'next.example'].map(async (name) => {
      const inside = bed.connect()
      inside.write(`CONNECT ${name}:443 HTTP/1.1\r\n\r\n`)
      return await readAll(inside)
    })
    for (const said of await Promise.all(both)) {
      expect(said).toMatch(/^HTTP\/1.1 504 [\s\S]*the name \w+.example has no answer in 10 ms/)
    }
  })

  test('a name server that fails is told apart from a name that is none', async () => {
    const resolve = () => Promise.reject(new Error('queryA ESERVFAIL a.example'))
    const bed = relayBed({ allow: ['a.example'] }, { resolve })
    const inside = bed.connect()
    inside.write('CONNECT a.example:443 HTTP/1.1\r\n\r\n')
    expect(await readAll(inside)).toMatch(
      /^HTTP\/1.1 502 [\s\S]*the name a.example can't be resolved: queryA ESERVFAIL/,
    )
  })
})
