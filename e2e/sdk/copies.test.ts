/** Copies of this machine's files: known by what is in them, and as they were, times included. */
import { chmod, mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { temporaryDirectory } from '@sandlot/testkit'
import { Image, type ImageDescription, type Sandlot } from 'sandlot'
import * as tar from 'tar-stream'
import { afterEach, expect, test, vi } from 'vitest'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** How many contents are sent meanwhile. */
async function uploads(doing: () => Promise<unknown>): Promise<number> {
  const fetched = vi.spyOn(globalThis, 'fetch')
  await doing()
  const sent = fetched.mock.calls.filter(([, init]) => init?.method === 'PUT')
  fetched.mockRestore()
  return sent.length
}

/** `path type mode uid mtime` of all that an image has. */
async function listed(client: Sandlot, id: string): Promise<string[]> {
  const extract = tar.extract()
  const feeding = pipeline(Readable.from(client.images.export(id, { format: 'tar' })), extract)
  const lines: string[] = []
  for await (const entry of extract) {
    const { name, type, mode, uid, mtime, pax } = entry.header
    const time = (pax as { mtime?: string } | null)?.mtime ?? (mtime?.getTime() ?? 0) / 1000
    lines.push(`${name.replace(/\/$/, '')} ${type} ${mode?.toString(8)} ${uid} ${time}`)
    for await (const _ of entry);
  }
  await feeding
  return lines.sort()
}

const builds: [way: string, describe: (from: string, at: string) => ImageDescription][] = [
  ['a directory', (from, at) => Image.fromId(from).copy(at, '/to')],
  ['a file', (from, at) => Image.fromId(from).copy(join(at, 'd/a'), '/to')],
  ['a Dockerfile', (_from, at) => Image.dockerfile(join(at, 'Dockerfile'))],
]

async function source(daemon: FakeDaemon, at: string): Promise<void> {
  const { id } = await daemon.image()
  await mkdir(join(at, 'd'))
  await writeFile(join(at, 'd/a'), 'A')
  await writeFile(join(at, 'd/b'), 'B'.repeat(100_000))
  const lines = [`FROM ${id}`, 'COPY d /to', 'COPY <<EOF /text', 'a text', 'EOF', 'ADD d/a /x/']
  await writeFile(join(at, 'Dockerfile'), lines.join('\n'))
}

const touch = async (at: string, seconds: number) => {
  for (const name of ['d', 'd/a', 'd/b']) await utimes(join(at, name), seconds, seconds)
}

test.each(builds)(
  '%s at another time is the same image, and is not sent again',
  async (_way, describe) => {
    await using daemon = await startFakeDaemon()
    await using directory = await temporaryDirectory()
    const client = daemon.client()
    await source(daemon, directory.path)
    const { id: from } = await daemon.image()
    const build = () => client.images.build(describe(from, directory.path))
    await touch(directory.path, 1_700_000_000)
    const first = await build()
    expect((await listed(client, first.id)).join('\n')).toContain(' 1700000000')
    await touch(directory.path, 1_800_000_000.5)
    const sent = await uploads(async () => expect((await build()).id).toBe(first.id))
    expect(sent).toBe(0)
  },
)

test('a changed file has its own new time; over another image all have theirs of now', async () => {
  await using daemon = await startFakeDaemon()
  await using directory = await temporaryDirectory()
  const client = daemon.client()
  await source(daemon, directory.path)
  const { id: from } = await daemon.image()
  const build = (base: string) =>
    client.images.build(Image.fromId(base).copy(join(directory.path, 'd'), '/to'))
  await touch(directory.path, 1_700_000_000)
  const first = await build(from)
  await touch(directory.path, 1_800_000_000.25)
  await writeFile(join(directory.path, 'd/a'), 'C')
  await utimes(join(directory.path, 'd/a'), 1_800_000_001.5, 1_800_000_001.5)
  const second = await build(first.id)
  expect((await listed(client, second.id)).filter((line) => line.startsWith('to/'))).toEqual([
    'to/a file 644 0 1800000001.5',
    'to/b file 644 0 1800000000.25',
  ])
})

test('a prepared environment with the same files at another time is the same, and sends nothing', async () => {
  await using daemon = await startFakeDaemon()
  await using directory = await temporaryDirectory()
  const client = daemon.client()
  await source(daemon, directory.path)
  const { id: from } = await daemon.image()
  const prepare = () =>
    client.prepare({ from, files: { [directory.path]: '/work' }, setup: ['make'] })
  const first = await prepare()
  await touch(directory.path, 1_800_000_000)
  const sent = await uploads(async () => expect((await prepare()).id).toBe(first.id))
  expect(sent).toBe(0)
})

test('client and daemon see the same in files of every kind', async () => {
  await using daemon = await startFakeDaemon()
  await using directory = await temporaryDirectory()
  const client = daemon.client()
  const at = join(directory.path, 'odd')
  const long = 'l'.repeat(120)
  await mkdir(join(at, 'ünï cödé', long), { recursive: true })
  const times: Record<string, number> = {
    locked: 1_700_000_000.25,
    [`ünï cödé/${long}/${long}`]: 1_700_000_000,
    'ünï cödé/é': 1_700_000_000.5,
    early: -7.5,
    late: 2 ** 32,
    empty: 0,
  }
  for (const [name, seconds] of Object.entries(times)) {
    await writeFile(join(at, name), name === 'empty' ? '' : name.repeat(1000), { mode: 0o4755 })
    // A number below zero would be now.
    const time = new Date(seconds * 1000)
    await utimes(join(at, name), time, time)
  }
  await chmod(join(at, 'locked'), 0)
  await symlink('ünï cödé/é', join(at, 'link'))
  await symlink(Buffer.from(`\xff${long}`, 'latin1'), join(at, 'odd link'))
  await symlink(`é${long}`, join(at, long))
  const { id: from } = await daemon.image()
  const image = await client.images.build(Image.fromId(from).copy(at, '/odd'))
  const lines = await listed(client, image.id)
  expect(lines).toContain('odd/locked file 0 0 1700000000.25')
  expect(lines).toContain('odd/ünï cödé/é file 4755 0 1700000000.5')
  expect(lines).toContain(`odd/ünï cödé/${long}/${long} file 4755 0 1700000000`)
  expect(lines).toContain('odd/early file 4755 0 0')
  expect(lines).toContain(`odd/late file 4755 0 ${2 ** 32}`)
})
