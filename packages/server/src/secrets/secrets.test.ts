/** Secrets over HTTP, and what becomes of them in a sandbox. */
import { once } from 'node:events'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { FakeDriver, FakeMachine } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'

const VALUE = 'sk-the-value-that-nobody-sees'

const keep = async (at: TestDaemon, name: string, value: unknown = VALUE) =>
  await at.ask('PUT', `/v1/secrets/${name}`, { json: { value } })

async function host() {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers)
    response.end('thanks')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const name = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(server, { seen, host: name })
}

interface Fake {
  readonly id: string
  readonly guest: { readonly relay: { connect(): NodeJS.ReadWriteStream } }
}

/** A driver that notes what variables commands have. */
function driverOf(machine = new FakeMachine()) {
  const envs: Record<string, string>[] = []
  const driver = new FakeDriver({
    machine,
    capabilities: { memorySnapshot: true },
    script: ({ env }) => {
      envs.push({ ...env })
      return { exitCode: 0 }
    },
  })
  return { driver, envs }
}

async function placeholderIn(at: TestDaemon, id: string, envs: Record<string, string>[]) {
  await at.exec(id, ['true'])
  return envs.at(-1)?.API_KEY as string
}

async function ask(at: TestDaemon, id: string, to: string, key: string): Promise<string> {
  const found = at.driver.machine.all().find((each) => each.id === id) as unknown as Fake
  const connection = found.guest.relay.connect()
  connection.write(`GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nX-Key: ${key}\r\n\r\n`)
  const [answer] = await once(connection, 'data')
  connection.end()
  return String(answer)
}

test('functions and single tasks use them by the same rules', async () => {
  await using at = await startTestDaemon()
  await keep(at, 'openai')
  const network = { allow: ['a.example'] }
  const using = (from: string, hosts = ['a.example:80']) => ({ API_KEY: { from, hosts } })
  const bundle = `sha256:${'0'.repeat(64)}`
  const put = async (more: object) => {
    const json = { kind: 'tasks', function: { bundle, export: 'a', label: 'a', ...more } }
    return await at.ask('PUT', '/v1/queues/q', { json })
  }
  expect(await put({ network, secrets: using('other') })).toMatchObject({ code: 'secret_unknown' })
  for (const [more, why] of [
    [{ secrets: using('openai') }, 'body.function.secrets.API_KEY.hosts: '],
    [{ network, secrets: using('openai'), env: { API_KEY: 'x' } }, 'body.function.env has this'],
  ] as const) {
    const refused = await put(more)
    expect([refused.code, refused.text]).toEqual(['invalid_request', expect.stringContaining(why)])
  }
  const env = { TAKEN: 'x' }
  const run = { name: 'r', kind: 'worker', from: await at.image(), concurrency: 1, env }
  expect((await at.ask('POST', '/v1/runs', { json: run })).status).toBe(200)
  const give = async (more: object) =>
    await at.ask('POST', '/v1/runs/r/tasks', {
      json: { tasks: [{ key: 'a', json: '1', ...more }] },
    })
  const agent = { agent: network }
  expect((await give({ secrets: using('openai') })).text).toContain('says in network too')
  expect(await give({ network: agent, secrets: using('other') })).toMatchObject({
    code: 'secret_unknown',
  })
  const taken = { TAKEN: using('openai').API_KEY }
  expect((await give({ network: agent, secrets: taken })).text).toContain('a secret in TAKEN')
  expect(await give({ network: agent, secrets: using('openai') })).toMatchObject({ status: 200 })
})

test('a secret is kept, listed by its name alone, and forgotten', async () => {
  await using at = await startTestDaemon()
  const kept = await keep(at, 'openai')
  expect(kept.json).toEqual({
    name: 'openai',
    createdAtMs: expect.any(Number),
    setAtMs: expect.any(Number),
  })
  await keep(at, 'openai', 'another')
  const listed = await at.ask('GET', '/v1/secrets')
  expect(listed.json).toMatchObject({ items: [{ name: 'openai' }], next: null })
  expect(kept.text + listed.text).not.toMatch(/another|the-value/)
  expect((await at.ask('DELETE', '/v1/secrets/openai')).status).toBe(204)
  expect(await at.ask('DELETE', '/v1/secrets/openai')).toMatchObject({ code: 'secret_unknown' })
})

test.each([
  ['openai', '', 'is empty'],
  ['openai', 'two\nlines', 'holds a line end'],
  ['openai', ' spaces ', 'begins or ends with a space'],
  ['openai', 'x'.repeat(8_193), 'longer than 8192'],
  ['openai', 5, 'value'],
  ['-odd', VALUE, 'the name of a secret'],
  ['a'.repeat(101), VALUE, 'the name of a secret'],
])('%j with %j is refused, and not said back', async (name, value, why) => {
  await using at = await startTestDaemon()
  const refused = await keep(at, name, value)
  expect(refused).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(refused.text).toContain(why)
  expect(refused.text).not.toMatch(/two|spaces|xxx|the-value/)
  // One reason is enough.
  expect(refused.text.match(/body\.value/g) ?? []).toHaveLength(name === 'openai' ? 1 : 0)
})

test('its value is in no file of the data directory, and the key is its owner’s alone', async () => {
  await using directories = await testDirectories()
  const at = await startTestDaemon({ directories })
  await keep(at, 'openai')
  await at.daemon.close()
  const { dataDirectory } = directories
  const files = await readdir(dataDirectory, { recursive: true, withFileTypes: true })
  for (const file of files.filter((each) => each.isFile())) {
    expect(await readFile(join(file.parentPath, file.name), 'latin1')).not.toContain(VALUE)
  }
  const { mode } = await stat(join(dataDirectory, 'secrets.key'))
  expect(mode & 0o777).toBe(0o600)
})

test('what can’t be used is refused before anything is started', async () => {
  await using at = await startTestDaemon()
  await keep(at, 'key')
  const network = { allow: ['api.example:80', '*.example:443'] }
  const create = async (secrets: unknown, more: object = {}) => {
    const from = await at.image()
    return await at.ask('POST', '/v1/sandboxes', { json: { from, network, secrets, ...more } })
  }
  const use = { from: 'key', hosts: ['api.example:80'] }
  for (const [secrets, why, more] of [
    [{ KEY: { ...use, hosts: ['api.example'] } }, "say tls: 'terminate'"],
    [{ KEY: { ...use, hosts: ['api.example:443'] } }, "say tls: 'terminate'"],
    [{ KEY: { ...use, hosts: ['10.0.0.0/8:80'] } }, 'is a network: name hosts'],
    [{ KEY: { ...use, hosts: [] } }, 'names no host'],
    [{ 'A-B': use }, 'no name of a variable'],
    [{ KEY: { ...use, hosts: ['other.test:80'] } }, 'is not allowed by the network policy'],
    [{ KEY: use }, 'body.env has this variable too', { env: { KEY: '1' } }],
    [{ KEY: use }, 'is not allowed by the network policy', { network: 'none' }],
  ] as [unknown, string, object?][]) {
    const refused = await create(secrets, more)
    expect([secrets, refused.status, refused.code]).toEqual([secrets, 400, 'invalid_request'])
    expect(refused.text).toContain(why)
  }
  expect(await create({ KEY: { ...use, from: 'nothing' } })).toMatchObject({
    status: 404,
    code: 'secret_unknown',
  })
  const run = { name: 'r', kind: 'worker', from: await at.image(), concurrency: 1 }
  const secrets = { KEY: { ...use, from: 'nothing' } }
  const json = { ...run, network: { agent: network }, secrets }
  expect(await at.ask('POST', '/v1/runs', { json })).toMatchObject({ code: 'secret_unknown' })
  expect(at.driver.machine.all().filter(({ dressed }) => dressed)).toEqual([])
})

test('commands see a placeholder, the host the secret, through pause, fork and another daemon', async () => {
  await using server = await host()
  await using directories = await testDirectories()
  const machine = new FakeMachine()
  const first = driverOf(machine)
  let at = await startTestDaemon({ directories, driver: first.driver })
  await keep(at, 'openai')
  const secrets = { API_KEY: { from: 'openai', hosts: [server.host] } }
  const made = await at.sandbox({
    network: { allow: [server.host] },
    secrets,
    checkpointable: true,
  })
  const { id } = made
  expect(made.secrets).toEqual(secrets)
  const key = await placeholderIn(at, id, first.envs)
  expect(key).toMatch(/^sandlot-secret-[0-9a-f]{40}$/)
  const check = async (of: string) => {
    // It is answered once the daemon has its way out again.
    await at.ask('GET', `/v1/sandboxes/${of}/network`)
    expect(await ask(at, of, server.host, key)).toContain('200 OK')
    expect(server.seen.at(-1)?.['x-key']).toBe(VALUE)
  }
  await check(id)
  await at.ask('POST', `/v1/sandboxes/${id}/pause`)
  await at.ask('POST', `/v1/sandboxes/${id}/resume`)
  await check(id)
  const forked = await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json: { count: 1 } })
  const { items } = forked.json as { items: { sandbox: { id: string } }[] }
  const copy = items[0]?.sandbox.id as string
  await check(copy)
  await at.daemon.close({ sandboxes: 'keep' })
  const second = driverOf(machine)
  at = await startTestDaemon({ directories, driver: second.driver })
  await using _ = at
  await check(id)
  await check(copy)
  // Of a memory snapshot that another sandbox starts from, what is in its memory is still the placeholder.
  const other = await at.sandbox({ network: { allow: [server.host] }, secrets })
  expect(await placeholderIn(at, other.id, second.envs)).toBe(key)
  // One that does not use it has nothing for it.
  const without = await at.sandbox({ network: { allow: [server.host] } })
  await ask(at, without.id, server.host, key)
  expect(server.seen.at(-1)?.['x-key']).toBe(key)
  await keep(at, 'openai', 'sk-rotated')
  await ask(at, id, server.host, key)
  expect(server.seen.at(-1)?.['x-key']).toBe('sk-rotated')
  await at.ask('DELETE', '/v1/secrets/openai')
  expect(await ask(at, id, server.host, key)).toContain('502 Secret not available')
})

test('a secret that was sealed with another key file is refused before anything is started, until it is set again', async () => {
  await using directories = await testDirectories()
  {
    await using at = await startTestDaemon({ directories })
    await keep(at, 'key')
  }
  await rm(join(directories.dataDirectory, 'secrets.key'))
  await using at = await startTestDaemon({ directories })
  const create = async () => {
    const secrets = { KEY: { from: 'key', hosts: ['api.example:80'] } }
    const json = { from: await at.image(), network: { allow: ['api.example:80'] }, secrets }
    return await at.ask('POST', '/v1/sandboxes', { json })
  }
  expect((await create()).json).toMatchObject({
    error: { code: 'secret_unknown', message: expect.stringContaining('another secrets.key') },
  })
  await keep(at, 'key')
  expect((await create()).status).toBe(201)
})
