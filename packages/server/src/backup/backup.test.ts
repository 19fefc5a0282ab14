import { spawn } from 'node:child_process'
import { once as event } from 'node:events'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, type TestDirectories } from '../testing/daemon.ts'
import { DATA_PREFIX, FILES_NAME } from './manifest.ts'
import { restoreBackup } from './restore.ts'

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function backup(at: TestDaemon, images = false): Promise<Buffer> {
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  return Buffer.concat(await Array.fromAsync(client.backup({ images })))
}

/** Directories of which the data is what was restored. */
function directoriesIn(path: string): TestDirectories {
  const [dataDirectory, runDirectory] = [join(path, 'data'), join(path, 'run')]
  return { dataDirectory, runDirectory, async [Symbol.asyncDispose]() {} }
}

test('runs, results, queues, keys and snapshots are there after a restore, and no sandbox is believed alive', async () => {
  await using place = await temporaryDirectory()
  const directories = directoriesIn(place.path)
  await using at = await startTestDaemon()
  const from = await at.image()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const run = client.rollouts.map([{ id: 'a' }, { id: 'b' }], async () => ({ reward: 1 }), {
    ...{ name: 'kept', from },
  })
  const rows = await run.wait()
  const { key } = await client.keys.create({ scope: 'run', project: 'p' })
  await client.queue('jobs').put('a task')
  await client.secrets.set('openai', 'sk-of-a-model')
  const sandbox = await at.sandbox()
  const snapshot = await (await client.sandboxes.get(sandbox.id)).snapshot({ name: 'kept' })
  const bytes = await backup(at, true)

  await expect(
    restoreBackup({ archive: once(bytes), dataDirectory: at.directories.dataDirectory }),
  ).rejects.toMatchObject({ code: 'invalid_request', message: /is not empty/ })
  const restored = await restoreBackup({ archive: once(bytes), ...directories })
  expect(restored).toMatchObject({ format: 1, images: true })
  expect(await readdir(place.path)).toEqual(['data'])
  await using other = await startTestDaemon({ directories })
  expect(other.daemon.apiKey).toBe(at.daemon.apiKey)
  await using there = new Sandlot({ url: other.url, apiKey: other.daemon.apiKey })
  expect(await (await there.rollouts.get('kept')).wait()).toEqual(rows)
  expect(await Array.fromAsync(there.sandboxes.list())).toEqual([])
  expect(await (await there.sandboxes.get(sandbox.id)).view()).toMatchObject({ state: 'stopped' })
  expect((await other.ask('GET', '/v1/queues/jobs')).json).toMatchObject({ tasks: { ready: 1 } })
  expect((await other.ask('GET', '/v1/sandboxes', { key })).status).toBe(200)
  expect(await there.snapshots.get(snapshot.id)).toMatchObject({ name: 'kept' })
  await there.sandboxes.create({
    from: snapshot.id,
    network: { allow: ['api.example:80'] },
    secrets: { KEY: { from: 'openai', hosts: ['api.example:80'] } },
  })
  const again = await other.ask('POST', '/v1/sandboxes', { json: { from: snapshot.id } })
  expect(again.status).toBe(201)
})

test('without images the rest goes on, and what they were made of is said to be missing', async () => {
  await using place = await temporaryDirectory()
  const directories = directoriesIn(place.path)
  await using at = await startTestDaemon()
  const from = await at.image()
  const bytes = await backup(at)
  expect(await restoreBackup({ archive: once(bytes), ...directories })).toMatchObject({
    images: false,
  })
  await using other = await startTestDaemon({ directories })
  const started = await other.ask('POST', '/v1/sandboxes', { json: { from } })
  expect(started.code).toBe('image_unknown')
})

test.each(['restore', 'start'])('what a killed restore left, the next %s removes', async (next) => {
  await using place = await temporaryDirectory()
  const directories = directoriesIn(place.path)
  await using at = await startTestDaemon()
  const bytes = await backup(at)
  await killedRestore(directories.dataDirectory, bytes.subarray(0, bytes.length / 2))
  expect(await unfinishedIn(place.path)).toHaveLength(1)
  if (next === 'restore') await restoreBackup({ archive: once(bytes), ...directories })
  else await (await startTestDaemon({ directories }))[Symbol.asyncDispose]()
  expect(await unfinishedIn(place.path)).toEqual([])
})

test('a restore leaves another one alone that is under way, and the first of them counts', async () => {
  await using place = await temporaryDirectory()
  const directories = directoriesIn(place.path)
  await using at = await startTestDaemon()
  const bytes = await backup(at)
  const half = Promise.withResolvers<void>()
  const rest = Promise.withResolvers<void>()
  async function* slowly() {
    yield bytes.subarray(0, bytes.length / 2)
    half.resolve()
    await rest.promise
    yield bytes.subarray(bytes.length / 2)
  }
  const slow = restoreBackup({ archive: slowly(), ...directories })
  await half.promise
  await restoreBackup({ archive: once(bytes), ...directories })
  expect(await unfinishedIn(place.path)).toHaveLength(1)
  rest.resolve()
  await expect(slow).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await unfinishedIn(place.path)).toEqual([])
})

async function unfinishedIn(path: string): Promise<string[]> {
  return (await readdir(path)).filter((name) => name.startsWith('data.restoring-'))
}

/** A process that is killed while it unpacks. */
async function killedRestore(dataDirectory: string, half: Buffer): Promise<void> {
  const restore = new URL('./restore.ts', import.meta.url).href
  const code = `
    import { restoreBackup } from ${JSON.stringify(restore)}
    async function* archive() {
      for await (const bytes of process.stdin) yield bytes
      process.stdout.write('unpacked')
      await new Promise(() => setInterval(() => {}, 1_000))
    }
    await restoreBackup({ archive: archive(), dataDirectory: ${JSON.stringify(dataDirectory)} })`
  const args = ['--input-type=module', '--eval', code]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = event(child, 'exit')
  child.stdin.end(half)
  await event(child.stdout, 'data')
  child.kill('SIGKILL')
  await exited
}

test('is the operator’s alone', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const { key } = await client.keys.create({ scope: 'admin', project: 'p' })
  expect((await at.ask('GET', '/v1/backup', { key })).code).toBe('forbidden')
  expect((await at.ask('GET', '/v1/backup', { key: null })).code).toBe('unauthorized')
})

test('what is damaged, cut off or no backup is refused, and leaves nothing', async () => {
  await using place = await temporaryDirectory()
  const directories = directoriesIn(place.path)
  await using at = await startTestDaemon()
  await at.image()
  const bytes = await backup(at)
  const changed = (change: (copy: Buffer) => void) => {
    const copy = Buffer.from(bytes)
    change(copy)
    return copy
  }
  const key = bytes.indexOf(`${DATA_PREFIX}key`)
  const list = bytes.indexOf(FILES_NAME)
  const cases: [what: string, archive: Buffer, why: RegExp][] = [
    ['nothing', Buffer.alloc(0), /nothing in it/],
    ['an empty tar', Buffer.alloc(1_024), /nothing in it/],
    ['no tar', Buffer.from('text '.repeat(1_000)), /bad header checksum/],
    ['half of it', bytes.subarray(0, list), /end is missing/],
    ['a part of a file', bytes.subarray(0, key + 600), /damaged|end is missing/],
    ['a byte that changed', changed((copy) => copy.write('x', key + 513)), /key in it is not what/],
    ['another format', changed((copy) => copy.write('"format":9', 512 + 1)), /format 9/],
  ]
  for (const [what, archive, why] of cases) {
    const restoring = restoreBackup({ archive: once(archive), ...directories })
    await expect(restoring, what).rejects.toMatchObject({ code: 'invalid_request', message: why })
    expect(await readdir(place.path), what).toEqual([])
  }
  // An empty directory is as good as none.
  await mkdir(directories.dataDirectory)
  await restoreBackup({ archive: once(bytes), ...directories })
  await writeFile(join(directories.dataDirectory, 'note'), '')
  await expect(restoreBackup({ archive: once(bytes), ...directories })).rejects.toThrow('not empty')
})
