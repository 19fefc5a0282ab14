import { encodePayload, type MuxStream } from '@sandlot/protocol/frames'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PipePair } from './testing/pipe-pair.ts'

const STAT = { sizeBytes: 3_000_000, mode: 0o644, uid: 0, gid: 0, mtimeMs: 1_700_000_000_123.5 }
const ENTRY = { kind: 'file', sizeBytes: 1, mode: 0o600, mtimeMs: 5 } as const

let pipes: PipePair

beforeEach(() => {
  pipes = new PipePair()
})
afterEach(() => pipes[Symbol.asyncDispose]())

describe('read', () => {
  test('gives the stat first, then the content with back-pressure', async () => {
    const { guest, agent } = await pipes.pair({ 'file.read': sendFile })
    const { stat, content } = await guest.files.read('main', '/a', { offset: 5, length: 6 })
    expect(stat).toEqual({ ...STAT, kind: 'file' })
    let length = 0
    for await (const bytes of content) length += bytes.length
    expect(length).toBe(3_000_000)
    expect(await content.result).toEqual({ sizeBytes: 3_000_000 })
    expect(agent.requests[0]).toMatchObject({ op: 'file.read', offset: 5, length: 6 })
  })

  test('is cancelled by a break', async () => {
    let cancelled = false
    const { guest } = await pipes.pair({
      'file.read': (stream) => {
        sendFile(stream)
        stream.signal.addEventListener('abort', () => {
          cancelled = true
        })
      },
    })
    const { content } = await guest.files.read('main', '/a')
    for await (const _ of content) break
    await expect(content.result).rejects.toMatchObject({ code: 'cancelled' })
    await expect.poll(() => cancelled).toBe(true)
  })

  test('of what is no file rejects before there is content', async () => {
    const { guest } = await pipes.pair({
      'file.read': (stream) => stream.fail({ code: 'is_directory', message: '/ is a directory' }),
    })
    await expect(guest.files.read('main', '/')).rejects.toMatchObject({ code: 'is_directory' })
  })

  test('a failure in the middle throws behind what has come', async () => {
    const { guest } = await pipes.pair({
      'file.read': (stream) => {
        stream.event({ kind: 'stat', ...STAT })
        void stream
          .send(1, new Uint8Array(10))
          .then(() => stream.fail({ code: 'io', message: 'the disk broke', errno: 5 }))
      },
    })
    const { content } = await guest.files.read('main', '/a')
    let length = 0
    const reading = async () => {
      for await (const bytes of content) length += bytes.length
    }
    await expect(reading()).rejects.toMatchObject({ name: 'GuestError', code: 'io', errno: 5 })
    expect(length).toBe(10)
  })

  test('content without its stat loses the guest', async () => {
    const { guest } = await pipes.pair({ 'file.read': (stream) => stream.result({ sizeBytes: 0 }) })
    await expect(guest.files.read('main', '/a')).rejects.toMatchObject({ cause: 'protocol' })
  })
})

describe('write', () => {
  test('sends bytes or an iterable to its end', async () => {
    const { guest, agent } = await pipes.pair({ 'file.write': takeFile })
    const small = await guest.files.write('main', '/a', new Uint8Array(10), { mode: 0o755 })
    expect(small).toEqual({ sizeBytes: 10 })
    async function* pieces() {
      for (let i = 0; i < 30; i++) yield new Uint8Array(100_000)
    }
    expect(await guest.files.write('main', '/b', pieces())).toEqual({ sizeBytes: 3_000_000 })
    expect(await guest.files.write('main', '/c', new Uint8Array(0))).toEqual({ sizeBytes: 0 })
    const flags = { parents: false, append: false, exclusive: false }
    expect(agent.requests[0]).toMatchObject({ op: 'file.write', mode: 0o755, ...flags })
  })

  test('leaves its source when the guest refuses', async () => {
    let left = false
    async function* endless() {
      try {
        for (;;) yield new Uint8Array(65_536)
      } finally {
        left = true
      }
    }
    const { guest } = await pipes.pair({
      'file.write': async (stream) => {
        for await (const _ of stream.read(0)) break
        stream.fail({ code: 'no_space', message: 'no space left', errno: 28 })
      },
    })
    const writing = guest.files.write('main', '/a', endless())
    await expect(writing).rejects.toMatchObject({ code: 'no_space' })
    await expect.poll(() => left).toBe(true)
  })

  test('a source that throws is the caller’s failure, and stops the upload', async () => {
    let stopped = false
    const { guest } = await pipes.pair({
      'file.write': (stream) => {
        stream.signal.addEventListener('abort', () => {
          stopped = true
        })
      },
    })
    async function* broken() {
      yield new Uint8Array(5)
      throw new Error('the source broke')
    }
    await expect(guest.files.write('main', '/a', broken())).rejects.toThrow('the source broke')
    await expect.poll(() => stopped).toBe(true)
  })
})

describe('list', () => {
  test('cuts entries out of the stream wherever the frames end', async () => {
    const names = Array.from({ length: 300 }, (_, i) => Uint8Array.of(0xff, i & 0xff, 1 + (i >> 8)))
    const { guest } = await pipes.pair({
      'file.list': async (stream) => {
        const parts = names.map((name) => encodePayload({ name, ...ENTRY }).slice())
        const all = Buffer.concat(parts)
        for (let at = 0; at < all.length; at += 997)
          await stream.send(1, all.subarray(at, at + 997))
        stream.end(1)
        stream.result({ count: names.length })
      },
    })
    const entries = []
    for await (const entry of guest.files.list('main', '/')) entries.push(entry)
    expect(entries).toEqual(names.map((name) => ({ name, ...ENTRY })))
  })

  test.each<[string, Uint8Array]>([
    ['an entry without a name', encodePayload({ ...ENTRY }).slice()],
    ['half an entry', encodePayload({ name: 'a', ...ENTRY }).slice(0, 12)],
    ['something else than maps', Uint8Array.of(1, 2, 3)],
    ['an entry without end', Uint8Array.of(0x81, 0xa1, 0x61, 0xc6, 0, 1, 0, 0, ...Array(9_000))],
  ])('%s loses the guest', async (_name, bytes) => {
    const { guest } = await pipes.pair({
      'file.list': (stream) => {
        void stream.send(1, bytes).then(() => stream.result({ count: 1 }))
      },
    })
    const reading = async () => {
      for await (const _ of guest.files.list('main', '/'));
    }
    await expect(reading()).rejects.toMatchObject({ name: 'GuestLost', cause: 'protocol' })
  })

  test('fails as any request does', async () => {
    const { guest } = await pipes.pair({
      'file.list': (stream) => stream.fail({ code: 'not_directory', message: '/a is a file' }),
    })
    const listing = guest.files.list('main', '/a')[Symbol.asyncIterator]().next()
    await expect(listing).rejects.toMatchObject({ code: 'not_directory' })
  })
})

test('no size or time of a file can lose the guest', async () => {
  const odd = { kind: 'file', ...STAT, sizeBytes: 2 ** 63, mtimeMs: -(2 ** 70) }
  const { guest } = await pipes.pair({ 'file.stat': (stream) => stream.result(odd) })
  expect(await guest.files.stat('main', '/a')).toMatchObject({
    sizeBytes: Number.MAX_SAFE_INTEGER,
    mtimeMs: -Number.MAX_SAFE_INTEGER,
  })
})

test('tars go in and out as streams', async () => {
  const { guest } = await pipes.pair({
    'tar.in': async (stream) => {
      let length = 0
      for await (const bytes of stream.read(0)) length += bytes.length
      stream.result({ entries: length })
    },
    'tar.out': async (stream) => {
      await stream.send(1, new Uint8Array(1_024).fill(3))
      stream.result({ entries: 4 })
    },
  })
  expect(await guest.tar.in('main', '/work', new Uint8Array(512))).toEqual({ entries: 512 })
  const tar = guest.tar.out('main', '/work')
  const parts = []
  for await (const bytes of tar) parts.push(bytes)
  expect(Buffer.concat(parts)).toEqual(Buffer.alloc(1_024, 3))
  expect(await tar.result).toEqual({ entries: 4 })
  const refused = guest.tar.out('main', '')
  await expect(refused.result).rejects.toMatchObject({ code: 'invalid' })
})

test('the small requests carry what they were given', async () => {
  const done = (stream: MuxStream) => stream.result({})
  const link = { kind: 'symlink', ...STAT, sizeBytes: 4, target: Uint8Array.of(0x2f, 0xff) }
  const { guest, agent } = await pipes.pair({
    'file.makeDirectory': done,
    'file.remove': done,
    'file.rename': done,
    'file.chmod': done,
    'file.stat': (stream) => stream.result(link),
  })
  await guest.files.makeDirectory('main', '/a', { parents: true })
  await guest.files.remove('main', '/a', { recursive: true })
  await guest.files.rename('main', '/a', Uint8Array.of(0x2f, 0xfe))
  await guest.files.chmod('main', '/a', 0o700)
  expect(await guest.files.stat('main', '/a', { follow: false })).toEqual(link)
  const path = Uint8Array.of(0x2f, 0x61)
  expect(agent.requests).toEqual([
    { op: 'file.makeDirectory', world: 'main', path, parents: true },
    { op: 'file.remove', world: 'main', path, recursive: true, force: false },
    { op: 'file.rename', world: 'main', from: path, to: Uint8Array.of(0x2f, 0xfe) },
    { op: 'file.chmod', world: 'main', path, mode: 0o700 },
    { op: 'file.stat', world: 'main', path, follow: false },
  ])
})

/** A file of 3 MB. */
function sendFile(stream: MuxStream): void {
  const work = async () => {
    stream.event({ kind: 'stat', ...STAT })
    for (let i = 0; i < 30; i++) await stream.send(1, new Uint8Array(100_000))
    stream.end(1)
    stream.result({ sizeBytes: 3_000_000 })
  }
  work().catch((error) => stream.fail({ code: 'cancelled', message: String(error) }))
}

function takeFile(stream: MuxStream): void {
  const work = async () => {
    let sizeBytes = 0
    for await (const bytes of stream.read(0)) sizeBytes += bytes.length
    stream.result({ sizeBytes })
  }
  work().catch((error) => stream.fail({ code: 'cancelled', message: String(error) }))
}
