/** An agent that was taken over, and what it can do by frames: lose its own sandbox, and nothing else. */
import {
  encodeFrame,
  encodePayload,
  FRAME,
  type FrameType,
  type MuxStream,
  type PayloadMap,
} from '@sandlot/protocol/frames'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ExecSpec, Guest } from './guest.ts'
import { PipePair } from './testing/pipe-pair.ts'
import type { AgentScript, ScriptedAgent } from './testing/scripted-agent.ts'

const MIB = 2 ** 20
const SPEC: ExecSpec = {
  world: 'main',
  exec: 'ex_1',
  argv: ['cat'],
  env: [],
  cwd: '/',
  stdin: true,
  mode: 'stream',
}

let pipes: PipePair
let beside: PipePair
let neighbour: Guest

beforeEach(async () => {
  pipes = new PipePair()
  beside = new PipePair()
  const script = { stats: (stream: MuxStream) => stream.result({ worlds: [], rings: 1 }) }
  neighbour = (await beside.pair(script)).guest
})
afterEach(async () => {
  expect(await neighbour.stats()).toMatchObject({ rings: 1 })
  await Promise.all([pipes[Symbol.asyncDispose](), beside[Symbol.asyncDispose]()])
})

const NOTHING = new Uint8Array(0)
const frame = (type: FrameType, stream: number, payload: Uint8Array = NOTHING, channel = 0) =>
  encodeFrame(type, channel, stream, payload)
const map = (type: FrameType, stream: number, payload: PayloadMap) =>
  frame(type, stream, encodePayload(payload).slice())

/** A frame's header with a length of its own. */
function withLength(lengthBytes: number, type: FrameType = FRAME.data): Uint8Array {
  const header = frame(type, 1, Uint8Array.of(1), 1).slice(0, 12)
  new DataView(header.buffer).setUint32(8, lengthBytes, true)
  return header
}

/** A MessagePack value that promises so many items and has none. */
const promise = (first: number, count: number) => {
  const bytes = new Uint8Array(5)
  bytes[0] = first
  new DataView(bytes.buffer).setUint32(1, count)
  return bytes
}
const [ARRAY_32, MAP_32, BYTES_32, TEXT_32] = [0xdd, 0xdf, 0xc6, 0xdb]
const BILLION = 1_000_000_000

const inside = frame(FRAME.data, 1, Uint8Array.of(7), 1)
const halfOf = (bytes: Uint8Array) => bytes.slice(0, Math.floor(bytes.length / 2))
const mangled = (at: number, value: number) => {
  const bytes = frame(FRAME.result, 1, encodePayload({}).slice())
  bytes[at < 0 ? bytes.length + at : at] = value
  return bytes
}

/** Request 1, a command that runs, is under way. */
const FORGED: [what: string, bytes: Uint8Array][] = [
  ['a frame of 4 GiB', withLength(0xffff_ffff)],
  ['a frame of one byte too many', withLength(65_537)],
  ['a result of 2 GiB', withLength(0x7fff_ffff, FRAME.result)],
  ['a type that there is not', mangled(1, 0x7f)],
  ['flags', mangled(3, 1)],
  ['another end', mangled(-1, 0)],
  ['a frame in the middle of another', Buffer.concat([halfOf(inside), inside, inside])],
  ['a frame cut short before the next', Buffer.concat([inside.slice(0, -1), inside])],
  ['text', Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
  ['a result for a request that nobody made', map(FRAME.result, 4_001, {})],
  ['an error for one', map(FRAME.error, 4_001, { code: 'io', message: 'x' })],
  ['an event for one', map(FRAME.event, 4_001, { kind: 'started', pid: 1 })],
  ['data for one', frame(FRAME.data, 4_001, Uint8Array.of(1), 1)],
  ['credit for one', frame(FRAME.credit, 4_001, new Uint8Array(4))],
  ['data on a channel that no stream has', frame(FRAME.data, 1, Uint8Array.of(1), 9)],
  ['a cancel of the daemon’s own request', frame(FRAME.cancel, 1)],
  ['an open in the daemon’s place', map(FRAME.open, 3, { op: 'relay.connect' })],
  [
    'data beyond its credit',
    Buffer.concat(Array(5).fill(frame(FRAME.data, 1, new Uint8Array(65_536), 1))),
  ],
  ['a result that is an array', frame(FRAME.result, 1, Uint8Array.of(0x90))],
  ['a result with a billion keys', frame(FRAME.result, 1, promise(MAP_32, BILLION))],
  ['a result that is a billion items', frame(FRAME.result, 1, promise(ARRAY_32, BILLION))],
  [
    'a result with a gigabyte of text',
    frame(FRAME.result, 1, Buffer.concat([Uint8Array.of(0x81), promise(TEXT_32, BILLION)])),
  ],
  [
    'a result of maps in maps, deeper than a stack',
    frame(FRAME.result, 1, new Uint8Array(60_000).fill(0x91)),
  ],
  ['a start without a pid', map(FRAME.event, 1, { kind: 'started' })],
  ['a pid below 0', map(FRAME.event, 1, { kind: 'started', pid: -1 })],
  [
    'an offset below 0',
    map(FRAME.event, 1, { kind: 'offset', channel: 1, offset: -1, droppedBytes: 0 }),
  ],
  [
    'an offset of stdin',
    map(FRAME.event, 1, { kind: 'offset', channel: 0, offset: 1, droppedBytes: 0 }),
  ],
  [
    'a million offsets',
    Buffer.concat(
      Array(64).fill(
        map(FRAME.event, 1, { kind: 'offset', channel: 1, offset: 1, droppedBytes: 0 }),
      ),
    ),
  ],
  ['a result of another shape', map(FRAME.result, 1, { exitCode: 'zero' })],
  ['an exit code that is no whole number', map(FRAME.result, 1, { ...result(), exitCode: 0.5 })],
  ['a signal and an exit code', map(FRAME.result, 1, { ...result(), exitCode: 0, signal: 9 })],
  ['a command that printed less than nothing', map(FRAME.result, 1, { ...result(), left: -3 })],
]

function result(): PayloadMap {
  const counts = { totalBytes: 0, droppedBytes: 0 }
  const common = { timedOut: false, killed: false, durationUs: 1, left: 0 }
  return { ...common, stdout: counts, stderr: counts }
}

describe('its sandbox ends by', () => {
  test.for(FORGED)('%s', async ([, bytes]) => {
    const { guest, agent } = await pipes.pair({ 'exec.start': () => {} })
    const running = guest.exec.start(SPEC)
    running.started.catch(() => {})
    running.result.catch(() => {})
    await expect.poll(() => agent.requests.length).toBe(1)
    agent.writeRaw(bytes)
    expect(await guest.lost).toMatchObject({ cause: 'protocol' })
    await expect(running.result).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })

  test('half a frame, and then its end', async () => {
    const { guest, agent } = await pipes.pair()
    agent.writeRaw(halfOf(inside))
    await expect.poll(() => agent.syncs).toBe(1)
    await agent.kill()
    expect(await guest.lost).toMatchObject({ cause: 'exited' })
  })
})

describe('answers that are too much', () => {
  const answering = async (op: string, answer: AgentScript[string]) =>
    await pipes.pair({ [op]: answer })

  test('a list of more commands than a sandbox has', async () => {
    const execs = Array.from({ length: 2_000 }, (_, at) => ({ exec: `${at}` }))
    const { guest } = await answering('exec.list', (stream) => stream.result({ execs }))
    await expect(guest.exec.list()).rejects.toMatchObject({ cause: 'protocol' })
  })

  test('an entry of a directory that promises a billion, a byte at a time', async () => {
    for (const first of [ARRAY_32, MAP_32, BYTES_32]) {
      const { guest } = await answering('file.list', (stream) => void drip(stream, first))
      await expect(Array.fromAsync(await guest.files.list('main', '/'))).rejects.toMatchObject({
        cause: 'protocol',
      })
      await pipes[Symbol.asyncDispose]()
      pipes = new PipePair()
    }
  })

  test('a directory without end is read as far as somebody wants, in no more memory', async () => {
    const entry = encodePayload({ name: 'x', kind: 'file', sizeBytes: 0, mode: 0o644, mtimeMs: 0 })
    const many = Buffer.concat(Array(1_000).fill(entry.slice()))
    let sentBytes = 0
    const { guest } = await answering('file.list', async (stream) => {
      try {
        for (;;) {
          await stream.send(1, many)
          sentBytes += many.length
        }
      } catch {
        stream.fail({ code: 'cancelled', message: 'nobody reads' })
      }
    })
    let read = 0
    for await (const _ of await guest.files.list('main', '/')) if (++read === 100_000) break
    expect(sentBytes).toBeLessThan(100_000 * entry.length + 4 * MIB)
    await expect(guest.stats()).rejects.toMatchObject({ code: 'unsupported' })
  })

  test('credit beyond all bounds lets no more out than there is', async () => {
    const { guest, agent } = await pipes.pair({ 'exec.start': (stream) => stream.event(STARTED) })
    const running = guest.exec.start(SPEC)
    await running.started
    running.result.catch(() => {})
    for (let n = 0; n < 100; n++) {
      agent.writeRaw(frame(FRAME.credit, 1, new Uint8Array(4).fill(0xff)))
    }
    const sent = await Promise.race([running.stdin.write(new Uint8Array(MIB)), guest.lost])
    expect([true, expect.objectContaining({ cause: 'protocol' })]).toContainEqual(sent)
  })
})

const STARTED = { kind: 'started', pid: 1 }

async function drip(stream: MuxStream, first: number): Promise<void> {
  try {
    for (const byte of promise(first, BILLION)) await stream.send(1, Uint8Array.of(byte))
    for (;;) await stream.send(1, new Uint8Array(1_024))
  } catch {
    // The daemon has enough.
  }
}

describe('floods', () => {
  /** Writes as fast as the daemon takes it, until it has enough. */
  async function flood(agent: ScriptedAgent, guest: Guest, next: () => Uint8Array, times: number) {
    let over = false
    void guest.lost.then(() => {
      over = true
    })
    for (let n = 0; n < times && !over; n++) {
      agent.writeRaw(next())
      if (n % 16 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  test('streams of its own are refused, however many, and none is kept', async () => {
    const { guest, agent } = await pipes.pair()
    const before = process.memoryUsage().rss
    let id = 0
    const opens = () =>
      Buffer.concat(
        Array.from({ length: 2_000 }, () => {
          id += 2
          return map(FRAME.open, id, { op: 'relay.connect' })
        }),
      )
    await flood(agent, guest, opens, 30)
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * MIB)
    // It goes on, or it was given up on because it read none of the refusals.
    const asked = guest.stats().catch((error) => error)
    agent.writeRaw(map(FRAME.error, 1, { code: 'busy', message: 'still here' }))
    const said = await asked
    const alive = said.code === 'busy' || said.cause === 'unresponsive'
    expect(alive, String(said)).toBe(true)
  })

  test('pings of an agent that takes no pong are not answered for ever', async () => {
    const { guest, agent } = await pipes.pair()
    agent.freeze()
    const pings = Buffer.concat(Array(4_000).fill(frame(FRAME.ping, 0, new Uint8Array(8))))
    await flood(agent, guest, () => pings, 500)
    expect(await guest.lost).toMatchObject({ cause: 'unresponsive' })
  })
})

test('whatever frames it sends, a guest goes on or is lost for a reason', async () => {
  const types = fc.constantFrom(...Object.values(FRAME))
  const payloads = fc.oneof(
    fc.uint8Array({ maxLength: 24 }),
    fc.constantFrom(0, 4, 8, 32).map((length) => new Uint8Array(length)),
    fc
      .dictionary(
        fc.constantFrom('kind', 'pid', 'channel', 'offset', 'execs', 'code', 'exitCode'),
        fc.oneof(fc.integer(), fc.constantFrom('started', 'offset', 'io', null, true)),
      )
      .map((said) => encodePayload(said as PayloadMap).slice()),
  )
  const frames = fc.tuple(types, fc.nat(4), fc.nat(6), payloads)
  const garbled = fc.tuple(fc.nat(40), fc.nat(255))
  const causes = ['protocol', 'unresponsive', 'exited', 'detached']
  await fc.assert(
    fc.asyncProperty(
      fc.array(frames, { maxLength: 8 }),
      fc.option(garbled, { freq: 2 }),
      async (said, garble) => {
        await using pair = new PipePair()
        const { guest, agent } = await pair.pair({ 'exec.start': () => {}, 'exec.list': () => {} })
        const waits = [guest.exec.start(SPEC).result, guest.exec.list()]
        const settled = Promise.allSettled(waits)
        await expect.poll(() => agent.requests.length).toBe(2)
        const bytes = Buffer.concat(
          said.flatMap(([type, channel, stream, payload]) => {
            try {
              return [encodeFrame(type, channel, stream, payload)]
            } catch {
              return [payload]
            }
          }),
        )
        if (garble && garble[0] < bytes.length) bytes[garble[0]] = garble[1]
        agent.writeRaw(bytes)
        await new Promise((resolve) => setImmediate(resolve))
        await guest.close()
        await settled
        expect(causes).toContain((await guest.lost).cause)
      },
    ),
    { numRuns: 40 },
  )
})
