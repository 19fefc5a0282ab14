import { createHash } from 'node:crypto'
import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { ChildDaemon } from '../testing/child-daemon.ts'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'

const MIB = 2 ** 20

test('files are written, read in parts, looked at, listed, renamed and removed', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox({ workdir: '/work' })
  const files = (method: string, path: string, query: string, ask = {}) =>
    at.ask(method, `/v1/sandboxes/${id}/files${path}?${query}`, ask)
  const odd = 'line\nbreak and ünïcode'
  const path = encodeURIComponent(odd)

  expect((await files('PUT', '', `path=${path}&mode=416`, { body: 'hello world' })).json).toEqual({
    sizeBytes: 11,
  })
  const whole = await files('GET', '', `path=/work/${path}`)
  expect(whole.text).toBe('hello world')
  expect(whole.headers.get('x-sandlot-size')).toBe('11')
  expect((await files('GET', '', `path=${path}&offset=6&length=3`)).text).toBe('wor')
  expect((await files('GET', '/stat', `path=${path}`)).json).toMatchObject({
    kind: 'file',
    sizeBytes: 11,
    mode: 0o640,
  })
  const listed = await files('GET', '/list', 'path=.')
  expect(
    listed.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).name),
  ).toEqual([odd])

  const json = { from: odd, to: 'plain' }
  expect((await files('POST', '/rename', '', { json })).status).toBe(204)
  expect((await files('POST', '/mode', '', { json: { path: 'plain', mode: 0o600 } })).status).toBe(
    204,
  )
  expect((await files('POST', '/directory', '', { json: { path: 'd' } })).status).toBe(204)
  expect((await files('PUT', '', 'path=plain&exclusive=true', { body: '' })).code).toBe(
    'file_exists',
  )
  expect((await files('GET', '', 'path=d')).code).toBe('file_is_directory')
  expect((await files('GET', '', 'path=none')).code).toBe('file_not_found')
  expect((await files('GET', '', 'path=plain&world=grade')).code).toBe('invalid_request')
  expect((await files('DELETE', '', 'path=plain')).status).toBe(204)
  expect((await files('DELETE', '', 'path=plain')).code).toBe('file_not_found')
  expect((await files('DELETE', '', 'path=plain&force=true')).status).toBe(204)
})

test('trees go in and out as tars', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const tree = `/v1/sandboxes/${id}/tree?path=/t`
  const put = await at.ask('PUT', tree, { body: smallTar('b.txt', 'inside') })
  expect(put.json).toMatchObject({ entries: expect.any(Number) })
  const got = await at.fetch('GET', tree)
  expect(got.headers.get('content-type')).toBe('application/x-tar')
  expect(Buffer.from(await got.arrayBuffer()).toString('latin1')).toContain('inside')
})

test('320 MiB go into storage and out again in constant memory', { timeout: 180_000 }, async () => {
  await using directories = await testDirectories()
  await using at = await ChildDaemon.start(directories)
  const size = 320 * MIB
  const hash = createHash('sha256')
  for (const chunk of pattern(size)) hash.update(chunk)
  const digest = `sha256:${hash.digest('hex')}`
  const before = await at.memoryBytes()

  const body = ReadableStream.from(pattern(size)) as never
  const put = await at.fetch('PUT', `/v1/blobs/${digest}`, { body })
  expect(await put.json()).toEqual({ digest, sizeBytes: size })
  const response = await at.fetch('GET', `/v1/blobs/${digest}`)
  const back = createHash('sha256')
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    back.update(chunk)
  }
  expect(`sha256:${back.digest('hex')}`).toBe(digest)
  const after = await at.memoryBytes()
  expect(after.peak - before.now).toBeLessThan(160 * MIB)
})

test('a download that nobody reads is not read from the sandbox either', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true }) })
  const { id } = await at.sandbox()
  const given = { bytes: 0 }
  endlessFile(at, id, given)
  const leave = new AbortController()
  const path = `/v1/sandboxes/${id}/files?path=/endless`
  const response = await at.fetch('GET', path, { signal: leave.signal })
  const reader = response.body?.getReader()
  await reader?.read()
  let before = -1
  while (before !== given.bytes) {
    before = given.bytes
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  // What the sockets of this machine hold, and no more.
  expect(given.bytes).toBeLessThan(16 * MIB)
  leave.abort()
})

test('an upload is taken no faster than the sandbox takes it, and a refusal in its midst is told', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox({ resources: { disk: '2MiB' } })
  const reply = await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/big`, {
    body: ReadableStream.from(pattern(8 * MIB)) as never,
  })
  expect(reply).toMatchObject({ status: 507, code: 'no_space' })
})

test('the same over the WebSocket: bytes, listings and trees', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  using client = await connect(at)
  const path = Buffer.from([0x2f, 0x61, 0xff])
  const flags = { parents: true, append: false, exclusive: false }
  const write = client.open({ op: 'file.write', sandbox: id, path, ...flags })
  for (const chunk of pattern(MIB)) await write.send(0, chunk)
  write.end(0)
  expect(await write.done).toEqual({ sizeBytes: MIB })

  const read = client.open({ op: 'file.read', sandbox: id, path })
  let bytes = 0
  for await (const chunk of read.read(1)) bytes += chunk.length
  expect(bytes).toBe(MIB)
  expect(await read.done).toMatchObject({ sizeBytes: MIB })

  const tarIn = client.open({ op: 'tar.in', sandbox: id, path: '/t' })
  await tarIn.send(0, smallTar('x', 'y'))
  tarIn.end(0)
  expect(await tarIn.done).toMatchObject({ entries: 1 })
  const list = client.open({ op: 'file.list', sandbox: id, path: '/t' })
  const chunks: Uint8Array[] = []
  for await (const chunk of list.read(1)) chunks.push(chunk)
  expect(await list.done).toEqual({ count: 1 })
  expect(Buffer.concat(chunks).toString('latin1')).toContain('sizeBytes')
  const tarOut = client.open({ op: 'tar.out', sandbox: id, path: '/t' })
  let tarBytes = 0
  for await (const chunk of tarOut.read(1)) tarBytes += chunk.length
  expect(await tarOut.done).toMatchObject({ entries: expect.any(Number) })
  expect(tarBytes).toBeGreaterThan(512)
  const none = client.open({ op: 'file.read', sandbox: newId('sandbox'), path: '/t' })
  await expect(none.done).rejects.toMatchObject({ code: 'sandbox_unknown' })
})

function* pattern(sizeBytes: number): Generator<Uint8Array> {
  const chunk = Buffer.alloc(64 * 2 ** 10)
  for (let left = sizeBytes; left > 0; left -= chunk.length) {
    chunk.writeUInt32LE(left % 2 ** 32)
    yield Buffer.from(chunk)
  }
}

/** Reading `/endless` gives chunk after chunk; what was taken is counted. */
function endlessFile(at: TestDaemon, id: string, given: { bytes: number }): void {
  const found = at.driver.machine.all().find((each) => each.id === id)
  if (!found) throw new Error('no sandbox')
  const files = found.guest.files as { read: typeof found.guest.files.read }
  const stat = { kind: 'file', sizeBytes: 0, mode: 0o644, uid: 0, gid: 0, mtimeMs: 0 } as const
  files.read = async () => {
    const bytes = (async function* () {
      for (;;) {
        given.bytes += 65_536
        yield new Uint8Array(65_536)
      }
    })()
    const content = Object.assign(bytes, { result: Promise.resolve({ sizeBytes: 0 }), cancel() {} })
    return { stat, content }
  }
}
