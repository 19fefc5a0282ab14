import { rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { FakeDriver } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { readAnnouncement } from './announcement.ts'
import { startDaemon } from './daemon.ts'
import { ChildDaemon } from './testing/child-daemon.ts'
import { startTestDaemon, testDirectories } from './testing/daemon.ts'
import { until } from './testing/until.ts'

test('a port in use is said with what to do, and nothing is left behind', async () => {
  await using directories = await testDirectories()
  const other = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as AddressInfo
  const start = () => startTestDaemon({ directories, daemon: { port } })
  await expect(start()).rejects.toMatchObject({
    code: 'invalid_request',
    message: `another program listens on 127.0.0.1:${port}`,
    hint: expect.stringContaining('--port 0'),
  })
  await new Promise((resolve) => other.close(resolve))
  // The data directory is free again, and so is everything else.
  await using at = await start()
  expect((await at.ask('GET', '/healthz')).status).toBe(200)
})

test('a second daemon on the same data directory is refused and names the first', async () => {
  await using at = await startTestDaemon()
  const { directories } = at
  await expect(startTestDaemon({ directories })).rejects.toMatchObject({
    message: expect.stringContaining(`process ${process.pid}`),
    hint: expect.stringContaining('Stop'),
  })
  expect((await readAnnouncement(directories.runDirectory))?.url).toBe(at.url)
})

test('a second daemon in the same run directory is refused, and clients find the first', async () => {
  await using at = await startTestDaemon()
  const { directories } = at
  const daemon = { dataDirectory: join(directories.dataDirectory, 'other') }
  await expect(startTestDaemon({ directories, daemon })).rejects.toMatchObject({
    message: expect.stringContaining(`process ${process.pid}`),
    hint: expect.stringContaining('--run-directory'),
  })
  expect((await readAnnouncement(directories.runDirectory))?.url).toBe(at.url)
})

test('where it answers is said again when that is deleted, and is not said any more after its end', async () => {
  await using directories = await testDirectories()
  const { runDirectory } = directories
  {
    await using at = await startTestDaemon({ directories })
    const isSaid = async () => (await readAnnouncement(runDirectory))?.url === at.url
    for (const path of [join(runDirectory, 'daemon.json'), runDirectory]) {
      expect(await isSaid()).toBe(true)
      // Away at once: one that is emptied first may be written to meanwhile.
      await rename(path, `${directories.dataDirectory}/deleted-${basename(path)}`)
      await until(isSaid)
    }
  }
  expect(await readAnnouncement(runDirectory)).toBeUndefined()
})

test('a directory that cannot be made is said', async () => {
  await using directories = await testDirectories()
  const { dataDirectory } = directories
  await writeFile(dataDirectory, 'a file in its place')
  const below = { dataDirectory: join(dataDirectory, 'data') }
  await expect(startTestDaemon({ directories, daemon: below })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining(below.dataDirectory),
    hint: expect.stringContaining('--data-directory'),
  })
})

test('a setting that is wrong is named', async () => {
  await expect(startDaemon({ port: 70_000 })).rejects.toThrow(
    'SANDLOT_PORT: "70000" is not a whole',
  )
  await expect(startDaemon({ cpus: 0 })).rejects.toThrow('SANDLOT_CPUS')
})

test('killed and started again: what lives is adopted, what died is told, what nobody owns is ended', async () => {
  await using directories = await testDirectories()
  const driver = new FakeDriver({ script: () => ({ stdout: 'alive' }) })
  const first = await startTestDaemon({ directories, driver })
  const [kept, dies] = [await first.sandbox({ tags: { a: 'b' } }), await first.sandbox()]
  // What a kill leaves: sandboxes that live on, of which one dies while no daemon is there.
  await first.daemon.close({ sandboxes: 'keep' })
  driver.kill(dies.id, 'oom_limit', 'while nobody looked')
  const orphan = await driver.create({
    id: 'sb_orphanorphanorphan00',
    layers: [],
    limits: { memoryBytes: 2 ** 28, cpus: 1, pidsMax: 64, diskBytes: 2 ** 20, nofileMax: 64 },
    hostname: 'orphan',
    detachedMs: 60_000,
  })

  await using again = await startTestDaemon({ directories, driver })
  const found = await again.ask('GET', `/v1/sandboxes/${kept.id}`)
  expect(found.json).toMatchObject({ state: 'running', tags: { a: 'b' } })
  expect((await again.exec(kept.id, 'x')).json).toMatchObject({ stdoutText: 'alive' })
  expect((await again.ask('GET', `/v1/sandboxes/${dies.id}`)).json).toMatchObject({
    state: 'stopped',
    ending: { kind: 'oom_limit', detail: 'while nobody looked' },
  })
  expect((await orphan.gone).kind).toBe('stopped')
  expect(again.driver.machine.all().filter(({ dressed }) => dressed).length).toBe(1)
})

test('stopped and started again: what lived in it ended with it, by no fault of the machine', async () => {
  await using directories = await testDirectories()
  const first = await startTestDaemon({ directories })
  const { id } = await first.sandbox()
  await first.daemon.close()

  await using again = await startTestDaemon({ directories })
  expect((await again.ask('GET', `/v1/sandboxes/${id}`)).json).toMatchObject({
    state: 'stopped',
    ending: { kind: 'shutdown', detail: 'the daemon was stopped' },
  })
  expect(await again.exec(id, 'true')).toMatchObject({ code: 'sandbox_lost' })
})

test('SIGKILL: the data directory is free at once, keys and endings are there', async () => {
  await using directories = await testDirectories()
  let id = ''
  let key = ''
  {
    await using at = await ChildDaemon.start(directories)
    key = at.apiKey
    const listed = await at.json('GET', '/v1/sandboxes')
    expect(listed.status).toBe(200)
    id = await childSandbox(at)
    await at.kill()
  }
  await using at = await ChildDaemon.start(directories)
  expect(at.apiKey).toBe(key)
  // Its sandboxes were in the memory of the process that was killed.
  const { status, json } = await at.json('GET', `/v1/sandboxes/${id}`)
  expect(status).toBe(200)
  expect(json).toMatchObject({ state: 'stopped', ending: { kind: 'lost' } })
  const exec = await at.json('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
  expect(exec.json).toMatchObject({ error: { code: 'sandbox_lost' } })
})

test('draining refuses new work, and what runs ends first', async () => {
  const end = Promise.withResolvers<void>()
  const at = await startTestDaemon({
    script: async () => {
      await end.promise
      return { stdout: 'in time' }
    },
  })
  await using _ = at.directories
  const sandbox = await at.sandbox()
  const running = at.exec(sandbox.id, 'x')
  await until(async () => /work_under_way 1/.test((await at.ask('GET', '/metrics')).text))
  const closed = at.daemon.close({ drainMs: 60_000 })
  await until(async () => (await at.ask('GET', '/healthz')).text.includes('draining'))
  const from = await at.image()
  for (const refused of [
    await at.exec(sandbox.id, 'x'),
    await at.ask('POST', '/v1/sandboxes', { json: { from } }),
    await at.ask('POST', '/v1/images', { json: { kind: 'tar', blob: 'sha256:' } }),
  ]) {
    expect(refused).toMatchObject({ status: 503, code: 'draining' })
    expect(refused.headers.get('retry-after')).toBe('1')
  }
  expect((await at.ask('GET', `/v1/sandboxes/${sandbox.id}`)).status).toBe(200)
  end.resolve()
  expect((await running).json).toMatchObject({ stdoutText: 'in time' })
  await closed
  expect(at.driver.machine.size).toBe(0)
  await expect(at.ask('GET', '/healthz')).rejects.toThrow()
})

test('a second close waits for nothing', async () => {
  const at = await startTestDaemon({ script: () => ({ hangs: true }) })
  await using _ = at.directories
  const { id } = await at.sandbox()
  const running = at.exec(id, 'x').catch(() => undefined)
  await until(async () => /work_under_way 1/.test((await at.ask('GET', '/metrics')).text))
  const closed = at.daemon.close({ drainMs: 3_600_000 })
  await at.daemon.close()
  await closed
  await running
  expect(at.driver.machine.size).toBe(0)
})

/** A sandbox of a daemon in another process. */
async function childSandbox(at: ChildDaemon): Promise<string> {
  const { createHash } = await import('node:crypto')
  const { smallTar } = await import('./testing/tar.ts')
  const tar = smallTar('a', 'b')
  const blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await at.fetch('PUT', `/v1/blobs/${blob}`, { body: tar })
  const response = await at.fetch('POST', '/v1/images', {
    body: JSON.stringify({ kind: 'tar', blob }),
  })
  const last = (await response.text()).trim().split('\n').at(-1) ?? ''
  const made = await at.json('POST', '/v1/sandboxes', { from: JSON.parse(last).image.id })
  return (made.json as { id: string }).id
}
