import { openSqliteEngine } from '@sandlot/engine'
import { type AuditEntry, keyCreated } from '@sandlot/protocol'
import { temporaryDirectory } from '@sandlot/testkit'
import { pino } from 'pino'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { AUDIT_PREFIX, Audit, DAY_MS } from './audit.ts'

async function entriesOf(at: TestDaemon, query = '', key = at.daemon.apiKey) {
  const reply = await at.ask('GET', `/v1/audit${query}`, { key })
  return (reply.json as { items: AuditEntry[] }).items
}

test('changes, connections and refusals are told with who and what, and no looks', async () => {
  await using directories = await testDirectories()
  let id = ''
  {
    await using at = await startTestDaemon({ directories })
    id = (await at.sandbox()).id
    await at.ask('GET', `/v1/sandboxes/${id}`)
    await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/secret-name`, { body: 'secret content' })
    await at.ask('GET', '/v1/sandboxes', { key: 'wrong' })
    using _ = await connect(at)
    await expect(connect(at, {})).rejects.toThrow('401')
    await at.ask('DELETE', `/v1/sandboxes/${id}`)
  }
  // It is durable.
  await using at = await startTestDaemon({ directories })
  const entries = await entriesOf(at)
  const told = entries.map(({ route, key, status, code, targets }) => ({
    ...{ route, key, status, code, targets },
  }))
  const local = { key: 'local', code: null }
  expect(told.slice(2)).toEqual([
    { ...local, route: 'createSandbox', status: 201, targets: {} },
    { ...local, route: 'writeFile', status: 200, targets: { id } },
    { key: null, route: 'listSandboxes', status: 401, code: 'unauthorized', targets: {} },
    { ...local, route: 'connect', status: 101, targets: {} },
    { key: null, route: 'connect', status: 401, code: 'unauthorized', targets: {} },
    { ...local, route: 'stopSandbox', status: 200, targets: { id } },
  ])
  for (const entry of entries) expect(entry.address).toMatch(/127\.0\.0\.1$/)
  expect(JSON.stringify(entries)).not.toContain('secret')
})

test('each project is told of its own, page by page, also through the SDK', async () => {
  await using at = await startTestDaemon()
  const json = { scope: 'admin', project: 'other' }
  const { id, key } = keyCreated.parse((await at.ask('POST', '/v1/keys', { json })).json)
  for (let n = 0; n < 5; n++)
    await at.ask('PUT', `/v1/queues/q${n}`, { key, json: { kind: 'tasks' } })
  expect((await entriesOf(at, '', key)).map(({ targets }) => targets.name)).toEqual([
    ...['q0', 'q1', 'q2', 'q3', 'q4'],
  ])
  expect((await entriesOf(at, `?key=${id}`)).length).toBe(5)
  expect((await entriesOf(at)).map(({ route }) => route)).toContain('createKey')
  const pages: string[] = []
  for (let after = ''; ; ) {
    const reply = await at.ask('GET', `/v1/audit?limit=2${after}`, { key })
    const { items, next } = reply.json as { items: AuditEntry[]; next: string | null }
    pages.push(...items.map(({ targets }) => targets.name ?? ''))
    if (next === null) break
    after = `&after=${encodeURIComponent(next)}`
  }
  expect(pages).toEqual(['q0', 'q1', 'q2', 'q3', 'q4'])
  await using client = new Sandlot({ url: at.url, apiKey: key })
  expect(await Array.fromAsync(client.audit({ key: id }))).toHaveLength(5)
  expect(await Array.fromAsync(client.audit({ to: '2020-01-01' }))).toEqual([])
  await expect(Array.fromAsync(client.audit({ from: 'soon' }))).rejects.toThrow('query.from')
  expect(await at.ask('GET', '/v1/audit?after=x')).toMatchObject({ code: 'invalid_request' })
})

test('old days go, and too much at once is told in number', async () => {
  await using place = await temporaryDirectory()
  const clock = createManualClock()
  await using engine = await openSqliteEngine({ directory: place.path, clock })
  const lines: string[] = []
  const logger = pino({}, { write: (line) => void lines.push(line) })
  await using audit = new Audit({ log: engine.log, clock, logger })
  const entry = {
    ...{ key: 'k', project: 'p', route: 'createRun', targets: {} },
    ...{ status: 200, code: null, address: null },
  }
  const streams = async () => (await engine.log.list(AUDIT_PREFIX)).streams.length
  audit.add(entry)
  await audit.flush()
  clock.advance(SERVER_LIMITS.auditDays * DAY_MS)
  audit.add(entry)
  await audit.flush()
  expect(await streams()).toBe(2)
  clock.advance(DAY_MS)
  for (let n = 0; n < SERVER_LIMITS.auditWaiting + 3; n++) audit.add(entry)
  await audit.flush()
  expect(await streams()).toBe(2)
  expect(lines.join('')).toContain('"entries":3')
})

test('what is written by a signed URL is told as done by the key that made it', async () => {
  await using at = await startTestDaemon()
  const reply = await at.ask('POST', '/v1/keys', { json: { scope: 'run' } })
  const { key, id: maker } = keyCreated.parse(reply.json)
  const { id } = await at.sandbox()
  await using client = new Sandlot({ url: at.url, apiKey: key })
  const sandbox = await client.sandboxes.get(id)
  await fetch(await sandbox.files.url('/a', { method: 'PUT' }), { method: 'PUT', body: 'x' })
  const written = (await entriesOf(at)).filter(({ route }) => route === 'writeSignedFile')
  expect(written).toMatchObject([{ key: maker, project: 'default', status: 200, targets: { id } }])
})
