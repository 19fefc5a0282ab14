import { once } from 'node:events'
import { request } from 'node:http'
import { fileUrl, keyCreated } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'

async function urlOf(at: TestDaemon, id: string, json: object, key = at.daemon.apiKey) {
  const reply = await at.ask('POST', `/v1/sandboxes/${id}/files/url`, { json, key })
  return reply.status === 200 ? fileUrl.parse(reply.json).path : reply
}

test('whoever has the URL reads that file, and nothing else', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/page.html`, { body: '<script>1</script>' })
  const path = (await urlOf(at, id, { path: '/page.html' })) as string
  const read = await at.ask('GET', path, { key: null })
  expect(read).toMatchObject({ status: 200, text: '<script>1</script>' })
  // What a browser gets is saved, not shown.
  expect(read.headers.get('content-type')).toBe('application/octet-stream')
  expect(read.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''page.html")
  expect(read.headers.get('x-content-type-options')).toBe('nosniff')
  expect(read.headers.get('content-security-policy')).toContain('sandbox')
  expect(read.headers.get('cache-control')).toContain('no-store')
  const written = await at.ask('PUT', path, { key: null, body: 'x' })
  expect(written).toMatchObject({ status: 403, code: 'forbidden' })
  for (const other of [`${path}x`, path.slice(0, -1), path.replace('sf_', 'st_')]) {
    const reply = await at.ask('GET', other, { key: null })
    expect(reply).toMatchObject({ status: 401, code: 'token_invalid' })
  }
  const authorization = `Bearer ${path.split('/').at(-1)}`
  const asKey = await at.ask('GET', '/v1/sandboxes', { key: null, headers: { authorization } })
  expect(asKey).toMatchObject({ status: 401, code: 'unauthorized' })
})

test('one to write puts the file there, from the SDK too', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const sandbox = await client.sandboxes.create({ from: await at.image() })
  const url = await sandbox.files.url('/in/the/file', { method: 'PUT', expires: '1h' })
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/signed\/files\/sf_/)
  const answer = await fetch(url, { method: 'PUT', body: 'sent' })
  expect(await answer.json()).toEqual({ sizeBytes: 4 })
  expect(await sandbox.files.readText('/in/the/file')).toBe('sent')
  expect((await fetch(url)).status).toBe(403)
  const read = await sandbox.files.url('/in/the/file')
  expect(await (await fetch(read)).text()).toBe('sent')
  // A page elsewhere gets nothing by it.
  const crossed = await fetch(read, { headers: { origin: 'http://evil.example' } })
  expect(crossed.status).toBe(403)
  await sandbox.stop()
  const gone = await at.ask('GET', new URL(read).pathname, { key: null })
  expect(gone).toMatchObject({ status: 410, code: 'sandbox_gone' })
})

test('it ends with the key that made it', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const reply = await at.ask('POST', '/v1/keys', { json: { scope: 'run' } })
  const made = keyCreated.parse(reply.json)
  const path = (await urlOf(at, id, { path: '/etc/motd', method: 'PUT' }, made.key)) as string
  expect((await at.ask('PUT', path, { key: null, body: 'x' })).status).toBe(200)
  await at.ask('DELETE', `/v1/keys/${made.id}`)
  const ended = await at.ask('PUT', path, { key: null, body: 'x' })
  expect(ended).toMatchObject({ status: 401, code: 'unauthorized' })
})

test('what is under way by it ends with that key too', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const reply = await at.ask('POST', '/v1/keys', { json: { scope: 'run' } })
  const made = keyCreated.parse(reply.json)
  const path = (await urlOf(at, id, { path: '/a', method: 'PUT' }, made.key)) as string
  const sending = request(`${at.url}${path}`, { method: 'PUT' })
  const answered = once(sending, 'response')
  // More than lies between the two: the daemon reads it, so it has let it in.
  for (let chunk = 0; chunk < 64; chunk++) {
    if (!sending.write(new Uint8Array(2 ** 20))) await once(sending, 'drain')
  }
  await at.ask('DELETE', `/v1/keys/${made.id}`)
  const [answer] = await answered
  expect(answer.statusCode).toBe(401)
  sending.destroy()
})

test('who guesses tokens is held up as who guesses keys', async () => {
  await using at = await startTestDaemon()
  const codes = new Set<string | undefined>()
  while (!codes.has('rate_limited')) {
    const tries = Array.from({ length: 100 }, (_, n) =>
      at.ask('GET', `/signed/files/sf_${n}.x`, { key: null }),
    )
    for (const { code } of await Promise.all(tries)) codes.add(code)
  }
  expect(codes).toEqual(new Set(['token_invalid', 'rate_limited']))
})

test.each([
  [{ path: '/a', expires: '8d' }, 'invalid_request'],
  [{ path: '/a', expires: '1ms' }, 'invalid_request'],
  [{ path: '/a', method: 'DELETE' }, 'invalid_request'],
  [{ path: '' }, 'invalid_request'],
])('refused: %j', async (json, code) => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  expect(await urlOf(at, id, json)).toMatchObject({ code })
})
