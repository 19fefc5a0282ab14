import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import { expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon, testDirectories } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'
import { KeyRing, newKey } from './keys.ts'

test('health and metrics need no key, everything below /v1 does', async () => {
  await using at = await startTestDaemon()
  expect((await at.ask('GET', '/healthz', { key: null })).json).toMatchObject({
    ok: true,
    state: 'serving',
  })
  expect((await at.ask('GET', '/metrics', { key: null })).text).toContain('sandlot_sandboxes')

  const refused = await at.ask('GET', '/v1/sandboxes', { key: null })
  expect(refused).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(refused.headers.get('www-authenticate')).toBe('Bearer')
  expect((await at.ask('GET', '/v1/sandboxes', { key: 'wrong' })).status).toBe(401)
  expect((await at.ask('GET', '/v1/sandboxes')).status).toBe(200)
})

test('the local key is found beside the data, for its owner alone, and stays over a restart', async () => {
  await using directories = await testDirectories()
  const path = join(directories.dataDirectory, 'key')
  let first = ''
  {
    await using at = await startTestDaemon({ directories })
    first = at.daemon.apiKey
    expect((await readFile(path, 'utf8')).trim()).toBe(first)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const said = JSON.parse(await readFile(join(directories.runDirectory, 'daemon.json'), 'utf8'))
    expect(said).toEqual({
      url: at.url,
      pid: process.pid,
      dataDirectory: directories.dataDirectory,
    })
  }
  await expect(stat(join(directories.runDirectory, 'daemon.json'))).rejects.toThrow('ENOENT')
  await using again = await startTestDaemon({ directories })
  expect(again.daemon.apiKey).toBe(first)
})

test('a key of scope read looks, one of scope run changes, and each sees its own project alone', async () => {
  await using directories = await testDirectories()
  const made = await makeKeys(directories.dataDirectory)
  await using at = await startTestDaemon({ directories })
  const mine = await at.sandbox()

  const { read, run } = made
  expect((await at.ask('GET', '/v1/sandboxes', { key: read })).json).toEqual({
    items: [],
    next: null,
  })
  const from = await at.image()
  expect(await at.ask('POST', '/v1/sandboxes', { key: read, json: { from } })).toMatchObject({
    status: 403,
    code: 'forbidden',
  })
  const unknown = await at.ask('POST', '/v1/sandboxes', { key: run, json: { from } })
  expect(unknown.code).toBe('image_unknown')
  const tar = smallTar('etc/motd', 'hello\n')
  const blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await at.ask('PUT', `/v1/blobs/${blob}`, { key: run, body: tar })
  await at.ask('POST', '/v1/images', { key: run, json: { kind: 'tar', blob } })
  expect((await at.ask('POST', '/v1/sandboxes', { key: run, json: { from } })).status).toBe(201)
  expect((await at.ask('DELETE', `/v1/images/${from}`, { key: run })).status).toBe(403)
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/execs'],
  ] as const) {
    const reply = await at.ask(method, `/v1/sandboxes/${mine.id}${path}`, { key: run })
    expect(reply).toMatchObject({ status: 404, code: 'sandbox_unknown' })
  }
  await expect(connect(at, { authorization: `Bearer ${read}` })).rejects.toThrow('answered 403')
})

test('pages of a foreign origin and rebound names are refused, also for the WebSocket', async () => {
  await using at = await startTestDaemon({ daemon: { allowedOrigins: ['http://good.example'] } })
  const from = (origin: string) => at.ask('GET', '/v1/sandboxes', { headers: { origin } })
  expect(await from('http://evil.example')).toMatchObject({ status: 403, code: 'forbidden' })
  expect((await from('http://good.example')).status).toBe(200)
  const authorization = `Bearer ${at.daemon.apiKey}`
  await expect(connect(at, { authorization, origin: 'http://evil.example' })).rejects.toThrow('403')
  await expect(connect(at, {})).rejects.toThrow('answered 401')
  await expect(connect(at, { authorization, host: 'rebound.example' })).rejects.toThrow('403')
})

async function makeKeys(dataDirectory: string) {
  const directory = join(dataDirectory, 'engine')
  await using engine = await openSqliteEngine({ directory })
  const ring = await KeyRing.open(engine, newKey(), () => 0)
  const read = await ring.create({ project: 'theirs', scope: 'read' })
  const run = await ring.create({ project: 'theirs', scope: 'run' })
  return { read: read.key, run: run.key }
}

test('a body that a page elsewhere could send without being asked is refused', async () => {
  await using at = await startTestDaemon()
  const body = JSON.stringify({ name: 'a', kind: 'worker', from: 'x', concurrency: 1 })
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const reply = await at.ask('POST', '/v1/runs', { body, headers: { 'content-type': type } })
    expect(reply).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(reply.text).toContain('content-type: application/json')
  }
  const untyped = await at.ask('POST', '/v1/runs', { body: Buffer.from(body) })
  expect(untyped.text).toContain('not said to be JSON')
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  expect((await at.ask('POST', '/v1/runs', { body, headers })).text).not.toContain('said to be')
})
