import { ConnectionLost, type MuxStream, type PayloadMap } from '@sandlot/protocol/frames'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ExecChunk, ExecRunSpec, ExecSpec } from './guest.ts'
import { PipePair } from './testing/pipe-pair.ts'

const RESULT = {
  exitCode: 0,
  timedOut: false,
  killed: false,
  durationUs: 1_200,
  stdout: { totalBytes: 5, droppedBytes: 0 },
  stderr: { totalBytes: 0, droppedBytes: 0 },
  left: 0,
  limits: ['pids'],
}
const { stdout, stderr, ...REST } = RESULT
const OUTCOME = { ...REST, counts: { stdout, stderr } }

const SPEC: ExecSpec = {
  world: 'main',
  exec: 'ex_1',
  argv: ['cat', Uint8Array.of(0xff)],
  env: [['PATH', '/bin']],
  cwd: '/work',
  stdin: true,
  mode: 'stream',
}
const RUN: ExecRunSpec = { world: 'main', exec: 'ex_1', argv: ['cat'], env: [], cwd: '/' }

let pipes: PipePair

beforeEach(() => {
  pipes = new PipePair()
})
afterEach(() => pipes[Symbol.asyncDispose]())

describe('start', () => {
  test('streams both ways and ends with the result', async () => {
    const { guest, agent } = await pipes.pair({ 'exec.start': cat })
    const exec = guest.exec.start(SPEC)
    expect(await exec.started).toEqual({ pid: 42 })
    expect(await exec.stdin.write(bytes('hello'))).toBe(true)
    exec.stdin.end()
    expect(await read(exec.output)).toEqual([{ channel: 'stdout', offset: 0, text: 'hello' }])
    expect(await exec.result).toEqual(OUTCOME)
    expect(await exec.stdin.write(bytes('more'))).toBe(false)
    expect(agent.requests).toEqual([
      {
        op: 'exec.start',
        world: 'main',
        exec: 'ex_1',
        argv: [bytes('cat'), Uint8Array.of(0xff)],
        env: [[bytes('PATH'), bytes('/bin')]],
        cwd: bytes('/work'),
        stdin: true,
        mode: 'stream',
      },
    ])
  })

  test('keeps the order of both channels, and says where what was dropped is missing', async () => {
    const { guest } = await pipes.pair({
      'exec.attach': (stream) => {
        stream.event({ kind: 'started', pid: 42 })
        stream.event({ kind: 'offset', channel: 1, offset: 1_000, droppedBytes: 990 })
        void stream.send(1, bytes('abc'))
        void stream.send(2, bytes('E')).then(() => {
          stream.event({ kind: 'offset', channel: 1, offset: 5_000, droppedBytes: 3_997 })
          void stream.send(1, bytes('xyz')).then(() => stream.result(RESULT))
        })
      },
    })
    const exec = guest.exec.attach('ex_1', { stdoutFrom: 10, stderrFrom: 3 })
    await exec.result
    expect(await read(exec.output)).toEqual([
      { channel: 'stdout', offset: 1_000, text: 'abc' },
      { channel: 'stderr', offset: 3, text: 'E' },
      { channel: 'stdout', offset: 5_000, text: 'xyz' },
    ])
  })

  test('that fails rejects everything of the handle', async () => {
    const { guest } = await pipes.pair({
      'exec.start': (stream) => stream.fail({ code: 'not_found', message: 'cat: not in PATH' }),
    })
    const exec = guest.exec.start(SPEC)
    const refused = { name: 'GuestError', code: 'not_found' }
    await expect(exec.started).rejects.toMatchObject(refused)
    await expect(exec.result).rejects.toMatchObject(refused)
    await expect(read(exec.output)).rejects.toMatchObject(refused)
    expect(await exec.stdin.write(bytes('x'))).toBe(false)
  })

  test('a reader that stalls stops its command and no other', async () => {
    let sent = 0
    const { guest } = await pipes.pair({
      'exec.start': async (stream) => {
        stream.event({ kind: 'started', pid: 1 })
        for (let i = 0; i < 40; i++) {
          await stream.send(1, new Uint8Array(65_536))
          sent++
        }
        stream.result(RESULT)
      },
      stats: (stream) => stream.result({ worlds: [], rings: 0 }),
    })
    const exec = guest.exec.start(SPEC)
    await exec.started
    for (let i = 0; i < 50; i++) await guest.stats()
    expect(sent).toBeLessThanOrEqual(4)
    let length = 0
    for await (const chunk of exec.output) length += chunk.bytes.length
    expect(length).toBe(40 * 65_536)
    await exec.result
  })

  test('the loss of another connection, with which its reader gives up, is none of the guest', async () => {
    const { guest } = await pipes.pair({ 'exec.start': cat })
    const client = new AbortController()
    const exec = guest.exec.start(SPEC, { signal: client.signal })
    await exec.started
    const lost = new ConnectionLost('closed by this side')
    client.abort(lost)
    await expect(exec.result).rejects.toBe(lost)
    await expect(exec.output[Symbol.asyncIterator]().next()).rejects.toBe(lost)
    const other = guest.exec.start({ ...SPEC, exec: 'ex_2' })
    other.stdin.end()
    expect(await other.result).toEqual(OUTCOME)
  })

  test('detach leaves the command alone', async () => {
    let cancelled = false
    const { guest } = await pipes.pair({
      'exec.start': (stream) => {
        stream.event({ kind: 'started', pid: 1 })
        stream.signal.addEventListener('abort', () => {
          cancelled = true
        })
      },
      'exec.kill': (stream) => stream.result({ processes: 1 }),
    })
    const exec = guest.exec.start(SPEC)
    await exec.started
    exec.detach()
    await expect(exec.result).rejects.toMatchObject({ code: 'cancelled' })
    await expect.poll(() => cancelled).toBe(true)
    expect(await guest.exec.kill('ex_1', 9)).toEqual({ processes: 1 })
  })

  test.each([
    ['both an exit code and a signal', { ...RESULT, signal: 9 }],
    ['neither', { ...RESULT, exitCode: undefined }],
    ['a limit that nobody knows', { ...RESULT, limits: ['luck'] }],
    ['a count below zero', { ...RESULT, left: -1 }],
    ['an exit code of 256', { ...RESULT, exitCode: 256 }],
  ])('a result with %s loses the guest', async (_name, result) => {
    const { guest } = await pipes.pair({ 'exec.start': (stream) => stream.result(result) })
    const exec = guest.exec.start(SPEC)
    await expect(exec.result).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })
})

describe('run', () => {
  test('gives result and output, and lets the agent forget', async () => {
    const { guest, agent } = await pipes.pair({ 'exec.start': cat })
    const outcome = await guest.exec.run({ ...RUN, stdin: bytes('hello') })
    expect(outcome).toEqual({ ...OUTCOME, stdout: bytes('hello'), stderr: new Uint8Array(0) })
    expect(agent.requests).toMatchObject([{ mode: 'buffered', stdin: true, forget: true }])
  })

  test('feeds an iterable as stdin and keeps the exec when asked', async () => {
    const { guest, agent } = await pipes.pair({ 'exec.start': cat })
    async function* input() {
      yield bytes('hel')
      yield bytes('lo')
    }
    const outcome = await guest.exec.run({ ...RUN, stdin: input(), keep: true })
    expect(outcome.stdout).toEqual(bytes('hello'))
    expect(agent.requests).toMatchObject([{ forget: false }])
  })

  test.each<[string, () => { signal?: AbortSignal; timeoutMs?: number }, object]>([
    ['its abort', () => ({ signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' }],
    ['the host’s deadline', () => ({ timeoutMs: 20 }), { name: 'GuestTimeout', timeoutMs: 20 }],
  ])('%s kills what the command started', async (_name, wait, error) => {
    const { guest, agent } = await pipes.pair({
      'exec.start': (stream) => stream.event({ kind: 'started', pid: 1 }),
      'exec.kill': (stream) => stream.result({ processes: 1 }),
    })
    await expect(guest.exec.run(RUN, wait())).rejects.toMatchObject(error)
    await expect.poll(() => agent.requests.length).toBe(2)
    expect(agent.requests[1]).toEqual({ op: 'exec.kill', exec: 'ex_1', signal: 9 })
  })

  test('a stdin source that throws is the caller’s failure, and kills the command', async () => {
    const { guest, agent } = await pipes.pair({
      'exec.start': cat,
      'exec.kill': (stream) => stream.result({ processes: 1 }),
    })
    // biome-ignore lint/correctness/useYield: it throws before its first piece
    async function* input(): AsyncGenerator<Uint8Array> {
      throw new Error('the disk is gone')
    }
    await expect(guest.exec.run({ ...RUN, stdin: input() })).rejects.toThrow('the disk is gone')
    await expect.poll(() => agent.requests.length).toBe(2)
  })

  test('an id that is in use kills nothing', async () => {
    const { guest, agent } = await pipes.pair({
      'exec.start': (stream) => stream.fail({ code: 'exec_exists', message: 'ex_1 exists' }),
      stats: (stream) => stream.result({ worlds: [], rings: 0 }),
    })
    await expect(guest.exec.run(RUN)).rejects.toMatchObject({ code: 'exec_exists' })
    await guest.stats()
    expect(agent.requests.map(({ op }) => op)).toEqual(['exec.start', 'stats'])
  })

  test('more output than was asked for loses the guest', async () => {
    const { guest } = await pipes.pair({
      'exec.start': (stream) => void stream.send(1, new Uint8Array(201)),
    })
    const run = guest.exec.run({ ...RUN, headBytes: 100, tailBytes: 100 })
    await expect(run).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })
})

test('execs and processes are listed in bytes', async () => {
  const listing = {
    exec: 'ex_1',
    world: 'main',
    running: true,
    pid: 7,
    command: Uint8Array.of(0xff, 0x41, 0, 0x42),
    cut: true,
    startedMs: Date.now() - 1_000,
    processes: 3,
  }
  const { guest } = await pipes.pair({
    'exec.list': (stream) => stream.result({ execs: [listing] }),
    'process.list': (stream) =>
      stream.result({ processes: [{ pid: 7, parent: 1, command: 'sh' }] }),
  })
  const [listed] = await guest.exec.list()
  expect(listed).toEqual({ ...listing, startedMs: expect.any(Number) })
  expect(listed?.startedMs).toBeGreaterThanOrEqual(1_000)
  expect(listed?.startedMs).toBeLessThan(60_000)
  expect(await guest.processes('main')).toEqual([{ pid: 7, parent: 1, command: bytes('sh') }])
})

/** Echoes stdin to stdout and ends with it. */
function cat(stream: MuxStream, _request: PayloadMap): void {
  stream.event({ kind: 'started', pid: 42 })
  const work = async () => {
    for await (const chunk of stream.read(0)) await stream.send(1, chunk)
    stream.result(RESULT)
  }
  work().catch((error) => stream.fail({ code: 'cancelled', message: String(error) }))
}

async function read(output: AsyncIterable<ExecChunk>) {
  const chunks = []
  for await (const chunk of output) {
    const text = Buffer.from(chunk.bytes).toString()
    chunks.push({ channel: chunk.channel, offset: chunk.offset, text })
  }
  return chunks
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
