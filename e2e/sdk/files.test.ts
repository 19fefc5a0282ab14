import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
let sandbox: Sandbox
let local: string
beforeAll(async () => {
  daemon = await startFakeDaemon()
  sandbox = await daemon.client().sandboxes.create({ from: await daemon.image() })
  local = await mkdtemp(join(tmpdir(), 'sandlot-files-'))
})
afterAll(async () => {
  await daemon[Symbol.asyncDispose]()
  await rm(local, { recursive: true })
})

async function* pieces(count: number, sizeBytes: number) {
  for (let i = 0; i < count; i++) yield new Uint8Array(sizeBytes).fill(i)
}

describe('files', () => {
  test('are written and read as text, bytes and streams', async () => {
    const { files } = sandbox
    expect(await files.write('/w/a/b.txt', 'grüße')).toEqual({ sizeBytes: 7 })
    expect(await files.readText('/w/a/b.txt')).toBe('grüße')
    expect([...(await files.read('/w/a/b.txt', { offset: 2, length: 2 }))]).toEqual([0xc3, 0xbc])
    await files.write('/w/a/b.txt', new Uint8Array([0xff, 0]), { append: true })
    expect(await files.readText('/w/a/b.txt')).toBe('grüße\ufffd\0')
    expect(await files.write('/w/large', pieces(40, 100_000))).toEqual({ sizeBytes: 4_000_000 })
    let readBytes = 0
    for await (const part of files.readStream('/w/large')) readBytes += part.length
    expect(readBytes).toBe(4_000_000)
  })

  test('are listed, looked at, moved and removed', async () => {
    const { files } = sandbox
    await files.makeDirectory('/l/deep/er')
    await files.write('/l/f', 'x', { mode: 0o600 })
    await files.write(Buffer.from([0x2f, 0x6c, 0x2f, 0xe9]), 'latin')
    const names = (await files.list('/l')).map(({ name, kind }) => [name, kind])
    expect(names).toContainEqual(['deep', 'directory'])
    expect(names).toContainEqual(['f', 'file'])
    expect(await files.stat('/l/f')).toMatchObject({ kind: 'file', sizeBytes: 1, mode: 0o600 })
    await files.changeMode('/l/f', 0o644)
    await files.rename('/l/f', '/l/g\nline')
    expect(await files.readText('/l/g\nline')).toBe('x')
    await files.remove('/l', { recursive: true })
    await files.remove('/l', { force: true })
    await expect(files.stat('/l')).rejects.toMatchObject({ code: 'file_not_found' })
  })

  test('are refused with the reason', async () => {
    const { files } = sandbox
    await files.write('/e/f', 'x')
    await expect(files.read('/e')).rejects.toMatchObject({ code: 'file_is_directory' })
    await expect(files.write('/e', 'x')).rejects.toMatchObject({ code: 'file_is_directory' })
    await expect(files.list('/e/f')).rejects.toMatchObject({ code: 'file_not_directory' })
    await expect(files.remove('/e')).rejects.toMatchObject({ code: 'directory_not_empty' })
    const twice = files.write('/e/f', 'y', { exclusive: true })
    await expect(twice).rejects.toMatchObject({ code: 'file_exists' })
    await expect(files.read('/e/\0')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(files.read('')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('are refused with the hint that the daemon gives', async () => {
    await sandbox.files.write('/etc/passwd', 'root:x:0:0::/:/bin/sh\n')
    await expect(sandbox.files.write('/e/g', 'x', { user: 'ghost' })).rejects.toMatchObject({
      code: 'invalid_request',
      hint: 'Name a user of its /etc/passwd, or give uid:gid.',
    })
  })

  test('say that the disk is full, with the content half sent', async () => {
    const resources = { memory: '128MiB', disk: '2MiB' }
    await using small = await daemon
      .client()
      .sandboxes.create({ from: await daemon.image(), resources })
    await expect(small.files.write('/big', pieces(50, 100_000))).rejects.toMatchObject({
      code: 'no_space',
      fault: 'workload',
    })
  })

  test('stop with their signal, and with the source that fails', async () => {
    const controller = new AbortController()
    async function* endless() {
      for (;;) {
        yield new Uint8Array(50_000)
        controller.abort(new Error('that will do'))
      }
    }
    const { signal } = controller
    await expect(sandbox.files.write('/s', endless(), { signal })).rejects.toThrow('that will do')
    async function* broken() {
      yield 'some'
      throw new Error('the disk of this side')
    }
    await expect(sandbox.files.write('/s', broken())).rejects.toThrow('the disk of this side')
    const reading = sandbox.files.read('/w/large', { signal: AbortSignal.abort(new Error('no')) })
    await expect(reading).rejects.toThrow('no')
  })

  test('go up and come down, one and whole trees', async () => {
    const from = join(local, 'from')
    await mkdir(join(from, 'sub'), { recursive: true })
    await writeFile(join(from, 'sub/one'), 'one')
    await writeFile(join(from, 'two'), Buffer.alloc(300_000, 2))
    await sandbox.files.upload(from, '/up/tree')
    await sandbox.files.upload(join(from, 'two'), '/up/two')
    expect(await sandbox.files.readText('/up/tree/sub/one')).toBe('one')
    await sandbox.files.download('/up/tree', join(local, 'to'))
    await sandbox.files.download('/up/two', join(local, 'deep/two'))
    expect((await readdir(join(local, 'to'), { recursive: true })).sort()).toEqual([
      'sub',
      'sub/one',
      'two',
    ])
    expect((await readFile(join(local, 'deep/two'))).length).toBe(300_000)
    const missing = sandbox.files.upload(join(local, 'none'), '/x')
    await expect(missing).rejects.toMatchObject({ code: 'not_found' })
    const absent = sandbox.files.download('/none', join(local, 'none'))
    await expect(absent).rejects.toMatchObject({ code: 'file_not_found' })
    expect((await readdir(local)).sort()).toEqual(['deep', 'from', 'to'])
  })
})

test('a daemon that is started again in the middle is not noticed, but where it matters', async () => {
  await using own = await startFakeDaemon()
  const { files } = await own.client().sandboxes.create({ from: await own.image() })
  const content = Buffer.alloc(2_000_000, 'abcdefg')
  await files.write('/f', content)
  const parts: Uint8Array[] = []
  for await (const part of files.readStream('/f')) {
    parts.push(part)
    if (parts.length === 1) await own.restart()
  }
  expect(Buffer.concat(parts).equals(content)).toBe(true)

  const started: Promise<unknown>[] = []
  await own.restart(async () => {
    started.push(files.write('/g', 'again'), files.list('/'), files.stat('/f'))
  })
  await Promise.all(started)
  expect(await files.readText('/g')).toBe('again')

  let feeding = false
  async function* slow() {
    yield 'first'
    feeding = true
    await until(() => restarted)
    yield 'second'
  }
  let restarted = false
  const streamed = files.write('/h', slow())
  streamed.catch(() => undefined)
  await until(() => feeding)
  await own.restart()
  restarted = true
  await expect(streamed).rejects.toMatchObject({ code: 'connection_lost' })
})
