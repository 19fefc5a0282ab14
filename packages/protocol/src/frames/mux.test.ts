import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameDecoder } from './decoder.ts'
import { encodeFrame } from './encode.ts'
import { FRAME, type FrameType, MalformedFrame } from './frame.ts'
import { Mux, type MuxOptions } from './mux.ts'
import type { MuxStream } from './mux-stream.ts'
import { encodePayload, type PayloadMap } from './payload.ts'
import {
  ConnectionLost,
  MuxBusy,
  RemoteError,
  StreamCancelled,
  type StreamFailure,
  StreamOver,
} from './stream-error.ts'
import { joinMuxes, seeded } from './testing/joined-muxes.ts'

test('streams of two joined muxes arrive intact, in every order, without a byte beyond the credit', async () => {
  const plan = fc.record({
    seed: fc.nat(),
    pipeBytes: fc.constantFrom(10, 50_000, 1_000_000),
    sizes: fc.array(fc.tuple(fc.nat(700_000), fc.nat(400_000)), { minLength: 1, maxLength: 8 }),
  })
  await fc.assert(
    fc.asyncProperty(plan, async ({ seed, pipeBytes, sizes }) => {
      const { dialler, dialled, overruns } = joinMuxes({
        seed,
        pipeBytes,
        dialled: { onOpen: mirror },
      })
      const answers = await Promise.all(
        sizes.map(async ([up, down], i) => {
          const stream = dialler.open({ op: 'mirror', down, seed: i })
          const events: PayloadMap[] = []
          stream.onEvent = (event) => events.push(event)
          const sent = sendRandom(stream, 0, i, up)
          const received = await collect(stream.read(1))
          await sent
          return { result: await stream.done, events, matches: isRandom(received, i, down) }
        }),
      )
      expect(answers).toEqual(
        sizes.map(([up]) => ({
          result: { sum: up, matches: true },
          events: [{ kind: 'started' }],
          matches: true,
        })),
      )
      expect([dialler.openStreams, dialled.openStreams, overruns]).toEqual([0, 0, []])
    }),
    { numRuns: 30 },
  )
})

test('a reader that stalls stops its own stream and no other', async () => {
  const { dialler } = joinMuxes({ seed: 1, dialled: { onOpen: mirror } })
  const stalled = dialler.open({ op: 'mirror', down: 2_000_000, seed: 1 })
  stalled.end(0)
  const reader = stalled.read(1)[Symbol.asyncIterator]()
  await reader.next()
  for (let i = 0; i < 20; i++) {
    const other = dialler.open({ op: 'mirror', down: 500_000, seed: i })
    other.end(0)
    expect(isRandom(await collect(other.read(1)), i, 500_000)).toBe(true)
  }
  expect(stalled.receivedBytes(1)).toBeLessThanOrEqual(262_144 + 65_536)
  let length = 0
  for (;;) {
    const { done, value } = await reader.next()
    if (done) break
    length += value.length
  }
  expect(length).toBeGreaterThan(1_900_000)
  await stalled.done
})

test('a send that waits for credit goes on when the reader reads', async () => {
  const { dialler, streams } = held()
  const stream = dialler.open({ op: 'upload' })
  let gone = 0
  const sent = [0, 1, 2].map(() => stream.send(0, new Uint8Array(200_000)).then(() => gone++))
  const acceptor = await streams.next()
  await until(() => acceptor.receivedBytes(0) === 262_144)
  expect(gone).toBe(1)
  const received = collect(acceptor.read(0))
  await Promise.all(sent)
  stream.end(0)
  expect((await received).length).toBe(600_000)
})

test('a larger window lets more be under way', async () => {
  const { dialler, streams } = held()
  const stream = dialler.open({ op: 'upload' })
  const acceptor = await streams.next()
  const reader = acceptor.read(0, { window: 1_000_000 })[Symbol.asyncIterator]()
  void stream.send(0, new Uint8Array(2_000_000)).catch(() => {})
  await until(() => acceptor.receivedBytes(0) === 1_000_000)
  expect((await reader.next()).done).toBe(false)
  dialler.close()
})

describe('the end of a stream', () => {
  test('a result goes behind the data, events and errors go ahead', async () => {
    const { dialler, streams } = held()
    const log: string[] = []
    const one = dialler.open({})
    one.onEvent = () => log.push('event')
    const acceptor = await streams.next()
    void acceptor.send(1, new Uint8Array(400_000))
    acceptor.event({})
    acceptor.result({ ok: true })
    const done = one.done.then(() => log.push('result'))
    expect((await collect(one.read(1))).length).toBe(400_000)
    log.push('data')
    await done
    expect(log[0]).toBe('event')
    expect(log.sort()).toEqual(['data', 'event', 'result'])

    const two = dialler.open({})
    const failing = await streams.next()
    const unsent = failing.send(1, new Uint8Array(400_000))
    failing.fail({ code: 'io', message: 'the disk broke', errno: 5 })
    await expect(unsent).rejects.toBeInstanceOf(RemoteError)
    await expect(two.done).rejects.toMatchObject({
      code: 'io',
      message: 'the disk broke',
      errno: 5,
    })
    await expect(collect(two.read(1))).rejects.toBeInstanceOf(RemoteError)
  })

  test('a failure carries its hint and its details, as far as they fit', async () => {
    const { dialler, streams } = held()
    const fail = async (failure: StreamFailure) => {
      const asked = dialler.open({})
      const acceptor = await streams.next()
      acceptor.fail(failure)
      return await asked.done.catch((error: unknown) => error)
    }
    const small = { code: 'c', message: 'm', hint: 'do this', details: { log: ['a'], n: 1 } }
    expect(await fail(small)).toMatchObject(small)
    const deep = (depth: number): object => (depth === 0 ? {} : { next: deep(depth - 1) })
    const unfit = [{ log: 'x'.repeat(100_000) }, { next: deep(40) }, JSON.parse('{"__proto__":1}')]
    for (const details of unfit) {
      const told = await fail({ code: 'c', message: 'm', hint: 'h'.repeat(9_000), details })
      expect(told).toMatchObject({ code: 'c', message: 'm', hint: 'h'.repeat(1_024) })
      expect(told).toHaveProperty('details', undefined)
    }
    expect(await fail({ code: 'c', message: 'm' })).toHaveProperty('hint', undefined)
  })

  test('what the opener still sends is refused when the answer is there', async () => {
    const { dialler, streams } = held()
    const stream = dialler.open({})
    const acceptor = await streams.next()
    const sent = stream.send(0, new Uint8Array(400_000))
    acceptor.result({})
    await expect(sent).rejects.toBeInstanceOf(StreamOver)
    await expect(stream.send(0, Uint8Array.of(1))).rejects.toBeInstanceOf(StreamOver)
  })

  test('cancel ends the acceptor’s work, and its answer still comes', async () => {
    const { dialler, dialled, streams } = held()
    const stream = dialler.open({})
    const acceptor = await streams.next()
    const reading = collect(acceptor.read(0))
    const sent = acceptor.send(1, new Uint8Array(400_000))
    await until(() => stream.receivedBytes(1) === 262_144)
    stream.cancel()
    await expect(reading).rejects.toBeInstanceOf(StreamCancelled)
    await expect(sent).rejects.toBeInstanceOf(StreamCancelled)
    expect(acceptor.signal.reason).toBeInstanceOf(StreamCancelled)
    expect(dialler.openStreams).toBe(1)
    acceptor.fail({ code: 'cancelled', message: 'stopped' })
    await expect(stream.done).rejects.toMatchObject({ code: 'cancelled' })
    const unread = stream.read(1)[Symbol.asyncIterator]().next()
    await expect(unread).rejects.toMatchObject({ code: 'cancelled' })
    expect([dialler.openStreams, dialled.openStreams]).toEqual([0, 0])
  })

  test('abort does not wait for the answer, which is dropped when it comes', async () => {
    const { dialler, streams } = held()
    const controller = new AbortController()
    const stream = dialler.open({}, { signal: controller.signal })
    const acceptor = await streams.next()
    const reading = collect(stream.read(1))
    controller.abort(new Error('enough'))
    await expect(stream.done).rejects.toThrow('enough')
    await expect(reading).rejects.toThrow('enough')
    await expect(stream.send(0, Uint8Array.of(1))).rejects.toThrow('enough')
    await until(() => acceptor.signal.aborted)
    acceptor.result({})
    await until(() => dialler.openStreams === 0)
    expect(() => dialler.open({}, { signal: controller.signal })).toThrow('enough')
  })

  test('a reader that leaves throws the rest away and blocks nobody', async () => {
    const { dialler, streams } = held()
    const stream = dialler.open({})
    const acceptor = await streams.next()
    const sent = acceptor.send(1, new Uint8Array(3_000_000))
    for await (const _ of stream.read(1)) break
    await sent
    acceptor.result({ fine: true })
    expect(await stream.done).toEqual({ fine: true })
  })

  test('a lost connection rejects everything, behind what has come', async () => {
    const { dialler, streams } = held()
    const stream = dialler.open({})
    const acceptor = await streams.next()
    await acceptor.send(1, Uint8Array.of(7))
    await until(() => stream.receivedBytes(1) === 1)
    const ping = dialler.ping()
    dialler.close()
    const reader = stream.read(1)[Symbol.asyncIterator]()
    expect((await reader.next()).value).toEqual(Uint8Array.of(7))
    await expect(reader.next()).rejects.toBeInstanceOf(ConnectionLost)
    await expect(stream.done).rejects.toBeInstanceOf(ConnectionLost)
    await expect(ping).rejects.toBeInstanceOf(ConnectionLost)
    expect(() => dialler.open({})).toThrow(ConnectionLost)
  })
})

test('two channels are read in the order of arrival', async () => {
  const { dialler, streams } = held()
  const stream = dialler.open({})
  const chunks = stream.readAll([1, 2])
  const acceptor = await streams.next()
  for (let i = 0; i < 40; i++) await acceptor.send(1 + (i % 2), Uint8Array.of(i))
  acceptor.result({})
  await stream.done
  const seen: number[] = []
  for await (const { channel, bytes } of chunks) {
    for (const byte of bytes) {
      expect(channel).toBe(1 + (byte % 2))
      seen.push(byte)
    }
  }
  expect(seen).toEqual([...Array(40).keys()])
})

test('the end of one of two channels does not end their reader', async () => {
  const { dialler, streams } = held()
  const stream = dialler.open({})
  const reader = stream.readAll([1, 2])[Symbol.asyncIterator]()
  const acceptor = await streams.next()
  acceptor.end(1)
  await acceptor.send(2, Uint8Array.of(5))
  expect((await reader.next()).value).toEqual({ channel: 2, bytes: Uint8Array.of(5) })
  acceptor.end(2)
  expect((await reader.next()).done).toBe(true)
  acceptor.result({})
  await stream.done
})

test('a flood of one-byte frames on alternating channels is held in about as many bytes', () => {
  const { mux } = alone()
  const stream = mux.open({})
  const one = encodeFrame(FRAME.data, 1, 1, Uint8Array.of(1))
  const two = encodeFrame(FRAME.data, 2, 1, Uint8Array.of(2))
  const pair = new Uint8Array([...one, ...two])
  stream.readAll([1, 2])
  const before = process.memoryUsage()
  for (let i = 0; i < 262_144; i++) mux.receive(pair)
  const after = process.memoryUsage()
  expect(stream.receivedBytes(1) + stream.receivedBytes(2)).toBe(524_288)
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(80 * 2 ** 20)
  expect(mux.closedBy).toBeUndefined()
})

test('pings are answered, hellos are heard, requests without a taker are unsupported', async () => {
  const hellos: PayloadMap[] = []
  const { dialler, dialled } = joinMuxes({
    seed: 5,
    dialler: { onHello: (hello) => hellos.push(hello) },
    dialled: { onOpen: () => {} },
  })
  dialled.hello({ protocol: 1 })
  await dialler.ping()
  expect(hellos).toEqual([{ protocol: 1 }])
  await expect(dialled.open({}).done).rejects.toMatchObject({ code: 'unsupported' })
})

test('streams are limited on both sides, and a handler that throws fails its stream', async () => {
  const { dialler } = joinMuxes({
    seed: 6,
    dialler: { limits: { streams: 3 } },
    dialled: {
      limits: { streams: 1 },
      onOpen: (_, request) => {
        if (request.op === 'throw') throw new Error('no such thing')
      },
    },
  })
  dialler.open({})
  const refused = dialler.open({})
  dialler.open({}).done.catch(() => {})
  expect(() => dialler.open({})).toThrow(MuxBusy)
  await expect(refused.done).rejects.toMatchObject({ code: 'limit' })
  const other = joinMuxes({
    seed: 7,
    dialled: {
      onOpen: () => {
        throw new Error('no such thing')
      },
    },
  })
  await expect(other.dialler.open({}).done).rejects.toMatchObject({
    code: 'io',
    message: 'no such thing',
  })
})

test('a peer that does not read is given up on when too much waits for it', () => {
  const { mux, closed } = alone({ write: () => false, limits: { controlBytes: 1_000 } })
  return Promise.resolve().then(() => {
    mux.open({})
    const ping = encodeFrame(FRAME.ping, 0, 0, new Uint8Array(8))
    return Promise.resolve().then(() => {
      for (let i = 0; i < 100; i++) mux.receive(ping)
      expect(closed[0]).toBeInstanceOf(ConnectionLost)
    })
  })
})

const NOTHING = new Uint8Array(0)

describe('what breaks the rules closes the mux', () => {
  const data = (stream: number, bytes: number, channel = 1) =>
    encodeFrame(FRAME.data, channel, stream, new Uint8Array(bytes))
  const map = (type: FrameType, stream: number, payload: PayloadMap) =>
    encodeFrame(type, 0, stream, encodePayload(payload))

  test.each<[string, string, Uint8Array[]]>([
    ['data for a stream that was never opened', 'stream', [data(3, 1)]],
    ['data on stream 0', 'stream', [data(0, 1)]],
    ['data for the peer’s own stream that it never opened', 'stream', [data(2, 1)]],
    ['data beyond the credit', 'credit', [...Array(4).fill(data(1, 65_536)), data(1, 1)]],
    ['data after its end', 'credit', [encodeFrame(FRAME.end, 1, 1, NOTHING), data(1, 1)]],
    ['a channel that no stream has', 'channel', [data(1, 1, 4)]],
    ['a result that is no map', 'payload', [encodeFrame(FRAME.result, 0, 1, Uint8Array.of(1))]],
    ['an error without a code', 'payload', [map(FRAME.error, 1, { message: 'x' })]],
    ['a cancel of our own request', 'stream', [encodeFrame(FRAME.cancel, 0, 1, NOTHING)]],
    ['an answer to its own request', 'stream', [map(FRAME.open, 2, {}), map(FRAME.result, 2, {})]],
    ['an open with our parity', 'stream', [map(FRAME.open, 5, {})]],
    ['an id used again', 'stream', [map(FRAME.open, 4, {}), map(FRAME.open, 4, {})]],
    ['an id that falls', 'stream', [map(FRAME.open, 4, {}), map(FRAME.open, 2, {})]],
    ['a hello nobody asked for', 'stream', [map(FRAME.hello, 0, {})]],
    ['rubbish', 'start', [Uint8Array.of(9)]],
  ])('%s', (_name, reason, frames) => {
    const { mux, closed } = alone({ onOpen: () => {} })
    const stream = mux.open({})
    for (const frame of frames) mux.receive(frame)
    expect(closed).toHaveLength(1)
    expect(closed[0]).toBeInstanceOf(MalformedFrame)
    expect(closed[0]).toMatchObject({ reason })
    return expect(stream.done).rejects.toBeInstanceOf(ConnectionLost)
  })

  test('frames for a stream that is over are dropped', async () => {
    const { mux } = alone()
    const stream = mux.open({})
    mux.receive(map(FRAME.result, 1, { ok: 1 }))
    for (const frame of [data(1, 65_536), data(1, 1), map(FRAME.result, 1, {})]) mux.receive(frame)
    expect(await stream.done).toEqual({ ok: 1 })
    expect(mux.closedBy).toBeUndefined()
  })

  test('random frames never throw', () => {
    const anyType = fc.constantFrom(...Object.values(FRAME))
    const anyPayload = fc.oneof(
      fc.constantFrom(0, 4, 8).map((length) => new Uint8Array(length)),
      fc.constant(encodePayload({ code: 'io', message: 'x' }).slice()),
      fc.uint8Array({ minLength: 1, maxLength: 20 }),
    )
    const frame = fc.tuple(anyType, fc.nat(5), fc.nat(8), anyPayload)
    fc.assert(
      fc.property(fc.array(frame), (frames) => {
        const { mux } = alone({ onOpen: (stream) => stream.result({}) })
        const streams = [mux.open({}), mux.open({})]
        streams[0]?.cancel()
        for (const [type, channel, stream, payload] of frames) {
          mux.deliver(type, channel, stream, payload)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

test('data of many streams takes turns', async () => {
  const order: number[] = []
  const decoder = new FrameDecoder((type, _, stream) => {
    if (type === FRAME.data) order.push(stream)
  })
  const { mux } = alone({
    write: (bytes) => {
      decoder.push(bytes)
      return true
    },
  })
  const sends = [1, 3, 5].map(() => mux.open({}).send(0, new Uint8Array(150_000)))
  await Promise.all(sends)
  expect(order).toEqual([1, 3, 5, 1, 3, 5, 1, 3, 5])
})

// ---- what the tests share

/** Answers with `down` random bytes on channel 1 and checks the ones that come on channel 0. */
function mirror(stream: MuxStream, request: PayloadMap): void {
  const { down, seed } = request as { down: number; seed: number }
  const work = async () => {
    stream.event({ kind: 'started' })
    const [received] = await Promise.all([
      collect(stream.read(0)),
      sendRandom(stream, 1, seed, down),
    ])
    stream.result({ sum: received.length, matches: isRandom(received, seed, received.length) })
  }
  work().catch((error) => stream.fail({ code: 'io', message: String(error) }))
}

async function sendRandom(stream: MuxStream, channel: number, seed: number, size: number) {
  const random = seeded(seed + 1)
  const all = randomBytes(seed, size)
  for (let at = 0; at < size; ) {
    const length = Math.ceil(random() ** 4 * 150_000)
    const sent = stream.send(channel, all.subarray(at, at + length))
    if (random() < 0.8) await sent
    at += length
  }
  stream.end(channel)
}

function randomBytes(seed: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  for (let i = 0, state = seed + 1; i < size; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    bytes[i] = state >>> 24
  }
  return bytes
}

function isRandom(bytes: Uint8Array, seed: number, size: number): boolean {
  const expected = randomBytes(seed, size)
  return bytes.length === size && expected.every((byte, i) => byte === bytes[i])
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk.slice())
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** Joined muxes whose dialled side hands each stream to the test. */
function held() {
  const arrived: MuxStream[] = []
  const joined = joinMuxes({ seed: 3, dialled: { onOpen: (stream) => arrived.push(stream) } })
  const next = async () => {
    await until(() => arrived.length > 0)
    return arrived.shift() as MuxStream
  }
  return { ...joined, streams: { next } }
}

/** A dialler whose peer is the test. */
function alone(options: Partial<MuxOptions> & { write?: (bytes: Uint8Array) => boolean } = {}) {
  const closed: Error[] = []
  const { write = () => true, ...rest } = options
  const mux = new Mux({
    side: 'dialler',
    transport: { write, onDrain: () => {} },
    onClose: (error) => closed.push(error),
    ...rest,
  })
  return { mux, closed }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
