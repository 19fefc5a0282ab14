import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keyCreated, type Scope } from '@sandlot/protocol'
import { Image, Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'

async function keyOf(at: TestDaemon, project: string, scope: Scope = 'admin'): Promise<string> {
  const reply = await at.ask('POST', '/v1/keys', { json: { scope, project } })
  return keyCreated.parse(reply.json).key
}

test('what was there before there was another project is that of the first, also over a restart', async () => {
  await using directories = await testDirectories()
  const tar = smallTar('etc/motd', 'hello\n')
  const blob = `/v1/blobs/sha256:${createHash('sha256').update(tar).digest('hex')}`
  let image = ''
  let other = ''
  {
    await using at = await startTestDaemon({ directories })
    image = await at.image()
    const { id } = await at.sandbox()
    const kept = await at.ask('POST', `/v1/sandboxes/${id}/snapshots`, {
      json: { kind: 'filesystem', name: 'kept' },
    })
    expect(kept.status).toBe(201)
    other = await keyOf(at, 'other')
  }
  await using at = await startTestDaemon({ directories })
  for (const path of [`/v1/images/${image}`, blob, '/v1/snapshots/kept']) {
    expect((await at.ask('GET', path)).status, path).toBe(200)
    expect((await at.ask('GET', path, { key: other })).status, path).toBe(404)
  }
  expect((await at.ask('GET', '/v1/images', { key: other })).json).toEqual({
    items: [],
    next: null,
  })
  // It sends the same content: now both have it.
  expect((await at.ask('PUT', blob, { body: tar, key: other })).status).toBe(201)
  expect((await at.ask('GET', blob, { key: other })).status).toBe(200)
  expect((await at.ask('GET', blob)).status).toBe(200)
})

test('an image goes with the last project that has it', async () => {
  await using at = await startTestDaemon()
  const key = await keyOf(at, 'other')
  const path = `/v1/images/${await at.image()}`
  const build = { json: { kind: 'tar', blob: '' } }
  const tar = smallTar('etc/motd', 'hello\n')
  build.json.blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await at.ask('PUT', `/v1/blobs/${build.json.blob}`, { body: tar, key })
  await at.ask('POST', '/v1/images', { ...build, key })
  expect((await at.ask('GET', path, { key })).status).toBe(200)
  expect((await at.ask('DELETE', path)).json).toMatchObject({ freedBytes: 0 })
  expect((await at.ask('GET', path)).code).toBe('image_unknown')
  expect((await at.ask('GET', path, { key })).status).toBe(200)
  const removed = (await at.ask('DELETE', path, { key })).json as { freedBytes: number }
  expect(removed.freedBytes).toBeGreaterThan(0)
  expect((await at.ask('GET', path, { key })).code).toBe('image_unknown')
})

test('a client of another project sends what it names, builds, and reads what its run left', async () => {
  await using at = await startTestDaemon()
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-holdings-'))
  try {
    await writeFile(join(directory, 'file'), 'the same in both')
    const rows = []
    for (const apiKey of [at.daemon.apiKey, await keyOf(at, 'other', 'run')]) {
      await using client = new Sandlot({ url: at.url, apiKey })
      const { id } = await client.images.build(Image.directory(directory))
      const run = client.rollouts.map(
        [{ id: 'a' }],
        async ({ sandbox }) => {
          await sandbox.files.write('/out', apiKey === at.daemon.apiKey ? 'first' : 'second')
          return { reward: 1 }
        },
        { name: 'same', from: id, concurrency: 1, artifacts: ['/out'] },
      )
      const [row] = await run.wait()
      if (!row) throw new Error('no row')
      expect(Buffer.from(await run.artifact(row, '/out')).toString()).toMatch(/first|second/)
      rows.push(row)
      const foreign = rows.length > 1 ? rows[0]?.artifacts[0]?.blob : undefined
      if (foreign === undefined) continue
      const stolen = await at.ask('GET', `/v1/blobs/${foreign}`, { key: apiKey })
      expect(stolen.code).toBe('blob_unknown')
    }
  } finally {
    await rm(directory, { recursive: true })
  }
})
