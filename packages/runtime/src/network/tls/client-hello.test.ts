import { once } from 'node:events'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { connectionPair } from '../../fake/connection-pair.ts'
import { NETWORK_LIMITS } from '../limits.ts'
import { type Beginning, ClientHelloReader } from './client-hello.ts'

/** As the library of this machine says it. */
async function helloFor(servername: string | undefined): Promise<Buffer> {
  const [client, wire] = connectionPair()
  client.on('error', () => {})
  const socket = connect({ socket: client, ...(servername ? { servername } : {}) })
  socket.on('error', () => {})
  const [hello] = (await once(wire, 'data')) as [Buffer]
  socket.destroy()
  return hello
}

function read(...chunks: readonly Buffer[]): Beginning | undefined {
  const reader = new ClientHelloReader()
  for (const chunk of chunks) {
    const found = reader.take(chunk)
    if (found) return found
  }
  return undefined
}

function record(bytes: Buffer, type = 0x16): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 1, bytes.length >> 8, bytes.length & 255), bytes])
}

/** The message of a hello, cut into records of so many bytes. */
function cut(hello: Buffer, bytes: number): Buffer {
  const message = hello.subarray(5)
  const parts = Array.from({ length: Math.ceil(message.length / bytes) }, (_, at) =>
    record(message.subarray(at * bytes, (at + 1) * bytes)),
  )
  return Buffer.concat(parts)
}

const NAMED = { kind: 'tls', serverName: 'api.example' }
const hello = await helloFor('api.example')

test('a hello names its server, however it comes', async () => {
  expect(read(hello)).toEqual(NAMED)
  expect(read(...Array.from(hello, (byte) => Buffer.of(byte)))).toEqual(NAMED)
  expect(read(cut(hello, 100))).toEqual(NAMED)
  expect(read(Buffer.concat([record(Buffer.of(1, 0), 0x15), hello]))).toEqual(NAMED)
  expect(read(hello.subarray(0, -1))).toBeUndefined()
  expect(read(await helloFor(undefined))).toEqual({ kind: 'tls' })
})

test('what is no TLS is told by its first bytes', () => {
  for (const text of [
    'GET / HTTP/1.1\r\n',
    'SSH-2.0-OpenSSH',
    '\0\0\0\x08\x04\xd2\x16\x2f',
    '\x16\x02',
  ]) {
    expect(read(Buffer.from(text, 'latin1'))).toEqual({ kind: 'other' })
  }
})

test('what looks like a hello and can’t be read is broken, not overlooked', () => {
  const twice = (): Buffer => {
    const [name] = [Buffer.from('api.example')]
    const entry = Buffer.concat([Buffer.of(0, 0, name.length), name])
    const list = Buffer.concat([Buffer.of(0, entry.length), entry])
    const extension = Buffer.concat([Buffer.of(0, 0, 0, list.length), list])
    const extensions = Buffer.concat([extension, extension])
    const body = Buffer.concat([
      ...[Buffer.of(3, 3), Buffer.alloc(32), Buffer.of(0), Buffer.of(0, 2, 0x13, 1)],
      ...[Buffer.of(1, 0), Buffer.of(0, extensions.length), extensions],
    ])
    return record(Buffer.concat([Buffer.of(1, 0, 0, body.length), body]))
  }
  const longer = Buffer.from(hello)
  longer.writeUIntBE(NETWORK_LIMITS.helloBytes + 1, 6, 3)
  for (const [bytes, why] of [
    [twice(), 'it names a server twice'],
    [longer, 'it is longer than any'],
    [cut(hello, 8), 'it is in too many records'],
    [Buffer.concat([record(hello.subarray(5, 100)), Buffer.from('GET /')]), 'what follows'],
    [record(Buffer.of(2, 0, 0, 0)), 'its first message is no hello'],
    [record(Buffer.of(1, 0, 0, 1, 3)), 'it ends early'],
    [Buffer.of(0x16, 3, 1, 255, 255), 'its record is longer than any'],
  ] as const) {
    expect(read(bytes)).toEqual({ kind: 'broken', why: expect.stringContaining(why) })
  }
})

test('any bytes, and any hello with bytes changed, are told in bounded memory and never throw', () => {
  const changed = fc
    .array(fc.tuple(fc.nat(hello.length - 1), fc.nat(255)), { maxLength: 4 })
    .map((changes) => {
      const bytes = Buffer.from(hello)
      for (const [at, byte] of changes) bytes[at] = byte
      return bytes
    })
  const like = fc.uint8Array({ maxLength: 400 }).map((bytes) => record(Buffer.from(bytes)))
  const any = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.oneof(changed, like, any), fc.integer({ min: 1, max: 64 }), (bytes, step) => {
      const chunks = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) =>
        bytes.subarray(at * step, (at + 1) * step),
      )
      // How it is cut on its way makes no difference.
      expect(read(...chunks)).toEqual(read(bytes))
    }),
    { numRuns: 2_000 },
  )
})

test('no more is held than a hello may have', () => {
  const reader = new ClientHelloReader()
  const alerts = record(Buffer.alloc(16_000, 1), 0x15)
  let taken = 0
  while (reader.take(alerts) === undefined) taken += alerts.length
  expect(taken).toBeLessThanOrEqual(NETWORK_LIMITS.helloBytes)
})
