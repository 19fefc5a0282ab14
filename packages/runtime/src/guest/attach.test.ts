import { writeFileSync } from 'node:fs'
import { encodeFrame, encodeSync, FRAME, type MuxStream } from '@sandlot/protocol/frames'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { GuestError, type GuestLost, GuestTimeout } from './guest-error.ts'
import { GUEST_REVISION } from './revision.ts'
import { PipePair } from './testing/pipe-pair.ts'
import { HELLO } from './testing/scripted-agent.ts'

let pipes: PipePair

beforeEach(() => {
  pipes = new PipePair()
})
afterEach(async () => {
  vi.useRealTimers()
  await pipes[Symbol.asyncDispose]()
})

describe('attach', () => {
  test('gives what the agent says of itself, and requests go through', async () => {
    const { guest, agent } = await pipes.pair({ configure: (stream) => stream.result({}) })
    expect(guest.hello).toEqual({ ...HELLO, worlds: [{ world: 'main', state: 'prepared' }] })
    await guest.configure({ sandbox: 'sb_1', detachedMs: 1_000 })
    expect(agent.requests).toEqual([{ op: 'configure', sandbox: 'sb_1', detachedMs: 1_000 }])
  })

  test('waits for an agent that comes later', async () => {
    const attaching = pipes.attach()
    await new Promise((resolve) => setImmediate(resolve))
    pipes.agent()
    expect((await attaching).hello.agent).toBe('scripted')
  })

  test.each([
    ['one byte of a header', 1],
    ['half a header', 7],
    ['half a payload', 40_000],
    ['all but the end byte', 65_548],
  ])('finds the boundary again after %s of a dead daemon', async (_name, length) => {
    const agent = pipes.agent({ stats: (stream) => stream.result({ worlds: [], rings: 0 }) })
    const first = await pipes.attach()
    const half = encodeFrame(FRAME.data, 0, 1, new Uint8Array(65_536).fill(0xa7)).slice(0, length)
    await pipes.writeToGuest(half)
    await first.close()
    const second = await pipes.attach({ resuming: true })
    expect(await second.stats()).toEqual({ worlds: [], rings: 0 })
    expect(agent.syncs).toBe(2)
  })

  test('drops what the agent had written for a dead daemon, also half of it', async () => {
    const agent = pipes.agent()
    const stale = [
      encodeFrame(FRAME.data, 1, 1, new Uint8Array(30_000)),
      encodeSync('syncAck', new Uint8Array(16)),
      encodeFrame(FRAME.data, 1, 1, new Uint8Array(9_000).fill(0xa7)).slice(0, 5_000),
    ]
    for (const bytes of stale) agent.writeRaw(bytes)
    const guest = await pipes.attach({ resuming: true })
    expect(guest.hello.agent).toBe('scripted')
  })

  test('what an older agent does not know is told as its age', async () => {
    const agent = pipes.agent()
    agent.hello = { ...HELLO, agent: `sandlot-agent 1.0.0 (revision ${GUEST_REVISION - 1})` }
    const old = await pipes.attach()
    await expect(old.stats()).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/no such request: its agent is of an older version .* anew/),
    })
    await old.close()
    agent.hello = { ...HELLO, agent: `sandlot-agent 1.0.0 (revision ${GUEST_REVISION + 1})` }
    const newer = await pipes.attach({ resuming: true })
    await expect(newer.stats()).rejects.toMatchObject({ message: 'no such request' })
  })

  test('a second daemon ends the requests of the first', async () => {
    const agent = pipes.agent({ stats: () => {} })
    const first = await pipes.attach()
    const pending = first.stats()
    pending.catch(() => {})
    await expect.poll(() => agent.requests.length).toBe(1)
    await first.close()
    await expect(pending).rejects.toMatchObject({ name: 'GuestLost', cause: 'detached' })
    await expect(first.stats()).rejects.toMatchObject({ cause: 'detached' })
    const second = await pipes.attach({ resuming: true })
    expect(second.hello.protocol).toBe(1)
  })

  test('a sandbox that died while no daemon was there is lost at once', async () => {
    await expect(pipes.attach({ resuming: true })).rejects.toMatchObject({
      name: 'GuestLost',
      cause: 'exited',
    })
  })

  test('an agent that does not answer is given up on', async () => {
    const agent = pipes.agent()
    agent.answersSync = false
    await expect(pipes.attach({ timeoutMs: 20 })).rejects.toMatchObject({ cause: 'no_handshake' })
    const controller = new AbortController()
    const attaching = pipes.attach({ signal: controller.signal })
    controller.abort(new Error('changed my mind'))
    await expect(attaching).rejects.toThrow('changed my mind')
  })

  test('paths that are no pipes are an error of the machine', async () => {
    writeFileSync(`${pipes.inPath}.txt`, '')
    const options = { inPath: `${pipes.inPath}.txt`, outPath: pipes.outPath }
    await expect(pipes.attach(options)).rejects.toMatchObject({ cause: 'io' })
    await expect(pipes.attach({ inPath: '/nowhere/in' })).rejects.toMatchObject({ cause: 'io' })
  })

  test.each([
    ['another protocol', { protocol: 2 }],
    ['a boot id of another length', { boot: new Uint8Array(15) }],
    ['a world in no known state', { worlds: [{ world: 'main', state: 'haunted' }] }],
    ['more worlds than there can be', { worlds: Array(65).fill({ world: 'a', state: 'open' }) }],
    ['a negative time', { uptimeMs: -1 }],
    ['no execs', { execs: undefined }],
  ])('a hello with %s is refused', async (_name, wrong) => {
    const agent = pipes.agent()
    agent.hello = { ...HELLO, ...wrong }
    await expect(pipes.attach()).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })
})

describe('loss', () => {
  test('the death of the sandbox rejects what is under way and what comes later', async () => {
    const { guest, agent } = await pipes.pair({ stats: () => {}, watch: () => {} })
    const pending = guest.stats()
    pending.catch(() => {})
    const news = guest.watch()[Symbol.asyncIterator]().next()
    news.catch(() => {})
    await expect.poll(() => agent.requests.length).toBe(2)
    await agent.kill()
    const lost = await guest.lost
    expect(lost).toMatchObject({ name: 'GuestLost', cause: 'exited' })
    await expect(pending).rejects.toBe(lost)
    await expect(news).rejects.toBe(lost)
    await expect(guest.files.stat('main', '/')).rejects.toBe(lost)
    const exec = guest.exec.start(SPEC)
    await expect(exec.result).rejects.toBe(lost)
    await expect(exec.started).rejects.toBe(lost)
  })

  test.each([
    ['rubbish', Uint8Array.of(1, 2, 3)],
    ['data for a stream that is not there', encodeFrame(FRAME.data, 1, 9, Uint8Array.of(1))],
    ['a second hello', encodeFrame(FRAME.hello, 0, 0, Uint8Array.of(0x80))],
    ['a sync', encodeSync('sync', new Uint8Array(16))],
  ])('%s from the guest loses it', async (_name, bytes) => {
    const { guest, agent } = await pipes.pair({ stats: () => {} })
    const pending = guest.stats()
    agent.writeRaw(bytes)
    await expect(pending).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
    expect((await guest.lost).cause).toBe('protocol')
  })

  test('a result of another shape loses it', async () => {
    const { guest } = await pipes.pair({ stats: (stream) => stream.result({ worlds: 'many' }) })
    await expect(guest.stats()).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })

  test('a guest that says nothing any more is pinged, then lost', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { guest, agent } = await pipes.pair({ stats: (s) => s.result({ worlds: [], rings: 0 }) })
    let lost: GuestLost | undefined
    void guest.lost.then((reason) => {
      lost = reason
    })
    for (let i = 0; i < 20; i++) {
      vi.advanceTimersByTime(30_000)
      await guest.stats()
    }
    expect(lost).toBeUndefined()
    agent.freeze()
    vi.advanceTimersByTime(120_000)
    await Promise.resolve()
    expect(lost).toBeUndefined()
    vi.advanceTimersByTime(30_000)
    expect((await guest.lost).cause).toBe('unresponsive')
  })

  test('a guest that stands still, as it was told to, may be silent for as long as that takes', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const answer = (stream: MuxStream) => stream.result({})
    const { guest, agent } = await pipes.pair({ freeze: answer, thaw: answer })
    let lost: GuestLost | undefined
    void guest.lost.then((reason) => {
      lost = reason
    })
    await guest.freeze()
    vi.advanceTimersByTime(3_600_000)
    await Promise.resolve()
    expect(lost).toBeUndefined()
    await guest.thaw()
    agent.freeze()
    vi.advanceTimersByTime(150_000)
    expect((await guest.lost).cause).toBe('unresponsive')
  })
})

describe('a request', () => {
  test('that fails in the sandbox is a GuestError, with what the kernel said', async () => {
    const { guest } = await pipes.pair({
      'file.stat': (stream) =>
        stream.fail({ code: 'not_found', message: 'no such file', errno: 2 }),
      'file.chmod': (stream) => stream.fail({ code: 'brand_new', message: 'x' }),
    })
    const error = await guest.files.stat('main', '/x').catch((reason) => reason)
    expect(error).toBeInstanceOf(GuestError)
    expect(error).toMatchObject({ code: 'not_found', message: 'no such file', errno: 2 })
    await expect(guest.files.chmod('main', '/x', 0o644)).rejects.toMatchObject({ code: 'io' })
  })

  test('that is not answered in time is a GuestTimeout, and the agent is told to stop', async () => {
    let cancelled = false
    const { guest } = await pipes.pair({
      stats: (stream) => {
        stream.signal.addEventListener('abort', () => {
          cancelled = true
          stream.fail({ code: 'cancelled', message: '' })
        })
      },
      'world.end': (stream, { timeoutMs }) =>
        stream.fail({ code: 'not_empty', message: `${timeoutMs}` }),
    })
    const error = await guest.stats({ timeoutMs: 20 }).catch((reason) => reason)
    expect(error).toBeInstanceOf(GuestTimeout)
    expect(error).toMatchObject({ op: 'stats', timeoutMs: 20 })
    await expect.poll(() => cancelled).toBe(true)
    await expect(guest.endWorld('main', { timeoutMs: 77 })).rejects.toMatchObject({
      code: 'not_empty',
      message: '77',
    })
  })

  test('that is aborted rejects with the reason at once', async () => {
    const { guest } = await pipes.pair({ stats: () => {} })
    const controller = new AbortController()
    const pending = guest.stats({ signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    await expect(guest.stats({ signal: controller.signal })).rejects.toThrow('enough')
  })

  test('with a NUL byte, an empty path or too large a command is refused before it is sent', async () => {
    const { guest, agent } = await pipes.pair()
    await expect(guest.files.stat('main', 'a\0b')).rejects.toMatchObject({ code: 'invalid' })
    await expect(guest.files.stat('main', '')).rejects.toMatchObject({ code: 'invalid' })
    const huge = guest.exec.start({ ...SPEC, argv: ['x'.repeat(70_000)] })
    await expect(huge.result).rejects.toMatchObject({ code: 'too_large' })
    const wrong = guest.exec.start({ ...SPEC, exec: '../x' })
    await expect(wrong.started).rejects.toMatchObject({ code: 'invalid' })
    expect(agent.requests).toEqual([])
  })
})

test('news come once each while nobody reads them, and end with the consumer', async () => {
  let cancelled = false
  const flag = { kind: 'flag', world: 'main', flag: 'pids', exec: 'ex_1' }
  const ended = { kind: 'world_ended', world: 'main', by: 'episode' }
  const { guest } = await pipes.pair({
    watch: (stream) => {
      for (let i = 0; i < 3_000; i++) stream.event(flag)
      stream.event(ended)
      stream.signal.addEventListener('abort', () => {
        cancelled = true
      })
    },
    stats: (stream) => stream.result({ worlds: [], rings: 0 }),
  })
  const watching = guest.watch()
  await guest.stats()
  const seen = []
  for await (const news of watching) {
    seen.push(news)
    if (news.kind === 'world_ended') break
  }
  expect(seen).toEqual([flag, ended])
  await expect.poll(() => cancelled).toBe(true)
})

const SPEC = {
  world: 'main',
  exec: 'ex_1',
  argv: ['true'],
  env: [],
  cwd: '/',
  stdin: false,
  mode: 'stream',
} as const
