import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import { keyCreated } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'
import { KeyRing, newKey } from './keys.ts'

async function create(at: TestDaemon, json: object, key = at.daemon.apiKey) {
  const reply = await at.ask('POST', '/v1/keys', { json, key })
  return reply.status === 201 ? keyCreated.parse(reply.json) : reply
}

async function made(at: TestDaemon, json: object) {
  const reply = await create(at, json)
  if (!('id' in reply)) throw new Error(reply.text)
  return reply
}

test('a key is created, listed without its text, used, and revoked', async () => {
  await using at = await startTestDaemon()
  const { key, ...view } = await made(at, { scope: 'run', name: 'trainer', project: 'team-a' })
  expect(key).toMatch(/^sk_[\w-]{43}$/)
  expect(view).toMatchObject({ scope: 'run', name: 'trainer', project: 'team-a' })
  expect(view.id).toMatch(/^ky_[a-z0-9]{20}$/)
  const listed = await at.ask('GET', '/v1/keys')
  expect(listed.json).toMatchObject({ items: [{ id: 'local' }, view] })
  expect(listed.text).not.toContain(key)
  expect((await at.ask('GET', '/v1/sandboxes', { key })).status).toBe(200)
  expect((await at.ask('DELETE', `/v1/keys/${view.id}`)).status).toBe(204)
  const refused = await at.ask('GET', '/v1/sandboxes', { key })
  expect(refused).toMatchObject({ status: 401, code: 'unauthorized' })
  const again = await at.ask('DELETE', `/v1/keys/${view.id}`)
  expect(again).toMatchObject({ status: 404, code: 'key_unknown' })
})

test('a revoked key loses what it holds open, and nobody else does', async () => {
  await using at = await startTestDaemon()
  const { id, key } = await made(at, { scope: 'run' })
  const { id: sandbox } = await at.sandbox()
  using theirs = await connect(at, { authorization: `Bearer ${key}` })
  using ours = await connect(at)
  const code = new Promise((resolve) => theirs.socket.once('close', resolve))
  const sleeping = at.ask('POST', `/v1/sandboxes/${sandbox}/exec`, {
    ...{ key, json: { command: ['sleep', '100'] } },
  })
  await until(async () =>
    (await at.ask('GET', `/v1/sandboxes/${sandbox}/execs`)).text.includes('sleep'),
  )
  await at.ask('DELETE', `/v1/keys/${id}`)
  expect(await code).toBe(1008)
  expect(await sleeping).toMatchObject({ status: 401, code: 'unauthorized' })
  await ours.open({ op: 'file.list', sandbox, path: '/' }).done
})

test('a key of a project rules keys of its project, the key of the machine those of all', async () => {
  await using at = await startTestDaemon()
  const a = await made(at, { scope: 'admin', project: 'a' })
  const b = await made(at, { scope: 'read', project: 'b' })
  expect(await create(at, { scope: 'read', project: 'b' }, a.key)).toMatchObject({
    code: 'forbidden',
  })
  const own = await create(at, { scope: 'read' }, a.key)
  expect(own).toMatchObject({ project: 'a' })
  const listed = await at.ask('GET', '/v1/keys', { key: a.key })
  expect(listed.text).not.toContain(b.id)
  expect(listed.text).not.toContain('local')
  for (const id of [b.id, 'local', 'ky_none']) {
    const reply = await at.ask('DELETE', `/v1/keys/${id}`, { key: a.key })
    expect(reply).toMatchObject({ status: 404, code: 'key_unknown' })
  }
  expect(await at.ask('DELETE', '/v1/keys/local')).toMatchObject({ code: 'invalid_request' })
  expect(await create(at, { scope: 'read' }, b.key)).toMatchObject({ code: 'forbidden' })
})

test('the same request again makes no second key and does not tell the first', async () => {
  await using at = await startTestDaemon()
  const ask = () =>
    at.ask('POST', '/v1/keys', { json: { scope: 'read' }, idempotencyKey: 'only-once' })
  const { id, key } = keyCreated.parse((await ask()).json)
  const again = await ask()
  expect(again).toMatchObject({ status: 409, code: 'idempotency_conflict' })
  expect(again.text).toContain(id)
  expect(again.text).not.toContain(key)
})

test.each([
  [{}, 'body.scope'],
  [{ scope: 'root' }, 'body.scope'],
  [{ scope: 'read', project: 'A b' }, 'body.project'],
  [{ scope: 'read', project: '../x' }, 'body.project'],
  [{ scope: 'read', name: '' }, 'body.name'],
  [{ scope: 'read', expires: '0s' }, 'body.expires'],
  [{ scope: 'read', expires: '1000000d' }, 'body.expires'],
  [{ scope: 'read', key: 'mine' }, 'key'],
])('refused: %j', async (json, named) => {
  await using at = await startTestDaemon()
  const reply = await at.ask('POST', '/v1/keys', { json })
  expect(reply).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(reply.text).toContain(named)
})

test('a key expires, stays listed for a while, and is dropped then', async () => {
  await using directories = await testDirectories()
  await using engine = await openSqliteEngine({ directory: join(directories.dataDirectory, 'e') })
  const clock = { nowMs: 0 }
  const local = newKey()
  const ring = await KeyRing.open(engine, local, () => clock.nowMs)
  const { key, record } = await ring.create({ project: 'p', scope: 'run', expiresAtMs: 1_000 })
  expect(ring.callerOf(key)).toMatchObject({ key: record.id, project: 'p', isOperator: false })
  clock.nowMs = 1_000
  expect(() => ring.callerOf(key)).toThrow('expired at 1970-01-01T00:00:01.000Z')
  expect(() => ring.check(record.id)).toThrow('expired')
  expect(ring.list().map(({ id }) => id)).toContain(record.id)
  clock.nowMs = 40 * 24 * 60 * 60_000
  await ring.create({ project: 'p', scope: 'run' })
  expect(ring.list().map(({ id }) => id)).not.toContain(record.id)
  const reopened = await KeyRing.open(engine, local, () => clock.nowMs)
  const idsOf = (keys: KeyRing) =>
    keys
      .list()
      .map(({ id }) => id)
      .sort()
  expect(idsOf(reopened)).toEqual(idsOf(ring))
  expect(reopened.callerOf(local)).toMatchObject({ key: 'local', isOperator: true })
})

test('no file of the daemon has the text of a key, but the one of its own', async () => {
  await using at = await startTestDaemon()
  const { key } = await made(at, { scope: 'run' })
  const { dataDirectory } = at.directories
  for (const entry of await readdir(dataDirectory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'key') continue
    const bytes = await readFile(join(entry.parentPath, entry.name))
    expect(bytes.includes(key), entry.name).toBe(false)
    expect(bytes.includes(at.daemon.apiKey), entry.name).toBe(false)
  }
})
