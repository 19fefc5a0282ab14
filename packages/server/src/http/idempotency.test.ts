import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, testDirectories } from '../testing/daemon.ts'

test('the same key gives the same sandbox, also while the first request is under way', async () => {
  await using at = await startTestDaemon()
  const from = await at.image()
  const create = () => at.ask('POST', '/v1/sandboxes', { json: { from }, idempotencyKey: 'one' })
  const replies = await Promise.all([create(), create(), create()])
  const ids = new Set(replies.map(({ json }) => (json as { id: string }).id))
  expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(ids.size).toBe(1)
  expect(replies.filter(({ headers }) => headers.get('idempotent-replayed')).length).toBe(2)
  const listed = (await at.ask('GET', '/v1/sandboxes')).json as { items: unknown[] }
  expect(listed.items.length).toBe(1)
})

test('the same key with another request is refused', async () => {
  await using at = await startTestDaemon()
  const from = await at.image()
  const ask = (json: unknown) => at.ask('POST', '/v1/sandboxes', { json, idempotencyKey: 'one' })
  expect((await ask({ from })).status).toBe(201)
  expect(await ask({ from, tags: { a: 'b' } })).toMatchObject({
    status: 409,
    code: 'idempotency_conflict',
  })
})

test('an answer survives the daemon; a request that was cut off gives the same id again', async () => {
  await using directories = await testDirectories()
  let first = ''
  let from = ''
  {
    await using at = await startTestDaemon({ directories })
    from = await at.image()
    const made = await at.ask('POST', '/v1/sandboxes', { json: { from }, idempotencyKey: 'one' })
    first = (made.json as { id: string }).id
  }
  await using at = await startTestDaemon({ directories })
  const again = await at.ask('POST', '/v1/sandboxes', { json: { from }, idempotencyKey: 'one' })
  expect(again.status).toBe(201)
  expect((again.json as { id: string }).id).toBe(first)
})

test('refusals are kept, what a retry may change is not', async () => {
  let fail = true
  await using at = await startTestDaemon({
    daemon: { poolTarget: 0 },
    onStart: () => (fail ? 'fail' : undefined),
  })
  const from = await at.image()
  const create = () => at.ask('POST', '/v1/sandboxes', { json: { from }, idempotencyKey: 'one' })
  expect(await create()).toMatchObject({ status: 503, code: 'create_failed' })
  fail = false
  expect((await create()).status).toBe(201)
})

test('a command with a key runs once, however often it is sent', async () => {
  let runs = 0
  await using at = await startTestDaemon({
    script: async () => {
      runs += 1
      await new Promise((resolve) => setImmediate(resolve))
      return { stdout: `${runs}` }
    },
  })
  const { id } = await at.sandbox()
  const run = (command: string, key: string) =>
    at.ask('POST', `/v1/sandboxes/${id}/exec`, { json: { command }, idempotencyKey: key })
  const replies = await Promise.all([run('a', 'k'), run('a', 'k')])
  replies.push(await run('a', 'k'))
  expect(replies.map(({ json }) => (json as { stdoutText: string }).stdoutText)).toEqual([
    '1',
    '1',
    '1',
  ])
  expect(runs).toBe(1)
  expect((await run('b', 'k')).code).toBe('idempotency_conflict')
  expect((await run('a', 'other')).status).toBe(200)
  expect(runs).toBe(2)
})

test('a streamed body is part of the request', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const path = `/v1/sandboxes/${id}/files?path=/a&append=true`
  const write = (body: string) => at.ask('PUT', path, { body, idempotencyKey: 'one' })
  expect((await write('hello')).status).toBe(200)
  expect((await write('hello')).status).toBe(200)
  expect((await write('other')).code).toBe('idempotency_conflict')
  expect((await at.ask('GET', `/v1/sandboxes/${id}/files?path=/a`)).text).toBe('hello')
})

test('keys are a project’s own, and bounded', async () => {
  await using at = await startTestDaemon()
  const reply = await at.ask('DELETE', `/v1/sandboxes/${newId('sandbox')}`, {
    idempotencyKey: 'x'.repeat(201),
  })
  expect(reply).toMatchObject({ status: 400, code: 'invalid_request' })
})
