/** What a policy allows only so much of. */
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { compilePolicy } from './policy.ts'
import { connectBy, listening, readAll, readExactly, relayBed } from './testing/relay-bed.ts'

/** Sends so many bytes to whoever connects, and counts what it is sent. */
async function sender(bytes: number) {
  const got = { bytes: 0 }
  const server = await listening(
    createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        got.bytes += chunk.length
      })
      socket.end(Buffer.alloc(bytes, 1))
    }),
  )
  return Object.assign(server, { got })
}

test('no byte beyond its bytes comes in, and the refusal has the name of the limit', async () => {
  await using server = await sender(1_000_000)
  const host = `127.0.0.1:${server.port}`
  const bed = relayBed({ allow: [host], limits: { bytes: 300_000 } })
  const { inside } = await connectBy(bed, host)
  let got = 0
  inside.on('error', () => {})
  inside.on('data', (chunk: Buffer) => {
    got += chunk.length
  })
  inside.resume()
  await expect.poll(() => inside.destroyed).toBe(true)
  expect(got).toBeLessThanOrEqual(300_000 + 'HTTP/1.1 200 Connection established\r\n\r\n'.length)
  const again = bed.connect()
  again.write(`CONNECT ${host} HTTP/1.1\r\n\r\n`)
  expect(await readAll(again)).toMatch(/^HTTP\/1.1 403 .*limits.bytes[\s\S]*293 KiB .* are used up/)
  expect(bed.news.map(({ outcome }) => outcome)).toEqual(['allowed', 'bytes_limit', 'bytes_limit'])
})

test('bytes of the sandbox’s life before count, and what is within them arrives whole', async () => {
  await using server = await sender(100_000)
  const host = `127.0.0.1:${server.port}`
  const policy = { allow: [host], limits: { bytes: 500_000 } }
  const bed = relayBed(policy, { spentBytes: 390_000 })
  const { inside } = await connectBy(bed, host)
  expect((await readAll(inside)).length).toBeGreaterThan(100_000)
  inside.end()
  const spent = relayBed(policy, { spentBytes: 500_000 })
  expect((await connectBy(spent, host)).status).toBe('HTTP/1.1 403')
})

test('a rate holds back both directions, and buffers nothing', async () => {
  await using server = await sender(50_000_000)
  const host = `127.0.0.1:${server.port}`
  const bed = relayBed({ allow: [host], limits: { bytesPerSecond: 100_000 } })
  const { inside } = await connectBy(bed, host)
  await readExactly(inside, 20_000)
  inside.resume()
  const [{ opened } = {}] = bed.news
  bed.relay.closeAll()
  const closed = await opened?.closed
  // What the kernel gave besides is what one read takes.
  expect(closed?.receivedBytes).toBeLessThan(2_000_000)
})

test('a request over plain HTTP is metered too', async () => {
  await using server = await listening(
    createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () =>
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`),
      )
    }),
  )
  const ask = async (bytes: number) => {
    const bed = relayBed({ allow: [`127.0.0.1:${server.port}`], limits: { bytes } })
    const inside = bed.connect()
    inside.on('error', () => {})
    inside.write(
      `GET http://127.0.0.1:${server.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    const said = await readAll(inside).catch(() => 'cut off')
    return { said, outcomes: bed.news.map(({ outcome }) => outcome) }
  }
  const whole = await ask(200_000)
  expect(whole.said.length).toBeGreaterThan(100_000)
  const cut = await ask(50_000)
  expect(cut.said.length).toBeLessThan(50_000)
  expect(cut.outcomes).toEqual(['allowed', 'bytes_limit'])
})

test('more connections in a minute are refused by name, those that are refused counted too', async () => {
  const policy = { allow: ['127.0.0.1:1'], limits: { connectionsPerMinute: 3 } }
  const bed = relayBed(policy, { limits: { rateRefusalMs: 1 } })
  const statuses: string[] = []
  for (const host of ['127.0.0.1:1', 'other.example:443', '127.0.0.1:1', '127.0.0.1:1']) {
    statuses.push((await connectBy(bed, host)).status.slice(9))
  }
  expect(statuses).toEqual(['502', '403', '502', '429'])
  expect(bed.news.at(-1)).toMatchObject({
    outcome: 'rate_limit',
    detail: expect.stringContaining('limits.connectionsPerMinute'),
  })
})

test('a hundred requests ahead of their answers end the connection', async () => {
  const bed = relayBed({ allow: ['slow.example'] }, { names: { 'slow.example': 'never' } })
  const inside = bed.connect()
  inside.on('error', () => {})
  inside.resume()
  inside.write('GET http://slow.example/ HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100))
  await expect.poll(() => inside.destroyed || inside.readableEnded).toBe(true)
  await expect.poll(() => bed.relay.connections).toBe(0)
})

test('a policy that begins to count closes what nobody counted, and one that ends lets all stay', async () => {
  await using server = await listening(createServer((socket) => socket.on('error', () => {})))
  const host = `127.0.0.1:${server.port}`
  const bed = relayBed({ allow: [host] })
  const uncounted = await connectBy(bed, host)
  bed.relay.setPolicy(compilePolicy({ allow: [host], limits: { bytes: 1_000 } }, []))
  await expect.poll(() => uncounted.inside.destroyed).toBe(true)
  const counted = await connectBy(bed, host)
  bed.relay.setPolicy(compilePolicy({ allow: [host, 'other.example'] }, []))
  expect(counted.inside.destroyed).toBe(false)
  expect(bed.relay.opened).toBe(1)
  expect(bed.relay.limits.bytes).toBeNull()
  await bed.relay.closeAll()
})

test('a connection whose address the new policy does not name is closed, though its name is', async () => {
  await using server = await listening(createServer((socket) => socket.on('error', () => {})))
  const name = `a.example:${server.port}`
  const names = { 'a.example': ['127.0.0.1'] }
  const bed = relayBed({ allow: [name, `127.0.0.1:${server.port}`] }, { names })
  const { inside, status } = await connectBy(bed, name)
  expect(status).toBe('HTTP/1.1 200')
  bed.relay.setPolicy(compilePolicy({ allow: [name] }, []))
  await expect.poll(() => inside.destroyed).toBe(true)
})
