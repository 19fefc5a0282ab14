import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { redacted } from './redact.ts'
import { ChildDaemon } from './testing/child-daemon.ts'
import { testDirectories } from './testing/daemon.ts'
import { smallTar } from './testing/tar.ts'
import { until } from './testing/until.ts'

test.each([
  ['Bearer sk_AbCdEfGhIjKlMnOpQrStUvWxYz', 'Bearer sk_(secret)'],
  ['GET /signed/files/sf_eyJhIjoxfQeyJhIjoxfQ.q-_9q-_9q-_9', 'GET /signed/files/sf_(secret)'],
  ['st_eyJhIjoxfQeyJhIjoxfQ.abc and sp_eyJhIjoxfQeyJhIjoxfQ.def', 'st_(secret) and sp_(secret)'],
  ['sb_abcdefghij0123456789 is a sandbox', 'sb_abcdefghij0123456789 is a sandbox'],
  [`/p/80-${'a'.repeat(20)}-tm3x2q-${'b'.repeat(28)}/`, `/p/80-${'a'.repeat(20)}-tm3x2q-(secret)/`],
  ['ask_me_anything_you_like', 'ask_me_anything_you_like'],
])('%s', (text, shown) => {
  expect(redacted(text)).toBe(shown)
})

/** In every place where a client can put a secret of its own. */
const MARKER = 'marker-7f3a9c2e'

test('a secret that a client sends stands in no log, no file of the daemon and no refusal', async () => {
  await using directories = await testDirectories()
  await using daemon = await ChildDaemon.start(directories, { keepsLog: true })
  const refusals: string[] = []
  const ask = async (method: string, path: string, init: RequestInit = {}) => {
    const answer = await daemon.fetch(method, path, init)
    const text = await answer.text()
    if (answer.status >= 400) refusals.push(text)
    return text
  }
  const tar = smallTar('etc/motd', 'hello\n')
  const blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await ask('PUT', `/v1/blobs/${blob}`, { body: tar })
  const built = await ask('POST', '/v1/images', { body: JSON.stringify({ kind: 'tar', blob }) })
  const from = /im_[a-z0-9]{20}/.exec(built)?.[0]
  const made = await ask('POST', '/v1/sandboxes', { body: JSON.stringify({ from }) })
  const at = `/v1/sandboxes/${/sb_[a-z0-9]{20}/.exec(made)?.[0]}`
  const exec = (body: object) => ask('POST', `${at}/exec`, { body: JSON.stringify(body) })
  const env = { API_KEY: MARKER, authorization: `Bearer ${MARKER}` }
  await exec({ command: ['echo', MARKER], env })
  await exec({ command: ['/not-there', MARKER], env, cwd: '/nowhere' })
  await exec({ command: ['true'], env: { ...env, 'A=B': '1' } })
  await ask('PUT', `${at}/files?path=/secret`, { body: MARKER })
  await ask('PUT', `${at}/files?path=/secret/below`, { body: MARKER })
  const headers = { 'idempotency-key': MARKER, cookie: `a=${MARKER}`, 'x-other': MARKER }
  await ask('POST', `${at}/exec`, { headers, body: JSON.stringify({ command: ['true'], env }) })
  for (const authorization of [`Bearer ${MARKER}`, `Basic ${MARKER}`, MARKER]) {
    await ask('GET', '/v1/sandboxes', { headers: { authorization } })
  }
  const key = await ask('POST', '/v1/keys', { body: JSON.stringify({ scope: 'run' }) })
  const secret = JSON.parse(key).key as string
  await ask('GET', '/v1/sandboxes', { headers: { authorization: `Bearer ${secret}` } })
  const url = JSON.parse(await ask('POST', `${at}/files/url`, { body: '{"path":"/secret"}' })).path
  await ask('GET', url)
  await ask('PUT', url, { body: MARKER })
  await ask('GET', `/v1/nothing/${secret}`)
  await ask('GET', `/v1/images/${url.split('/').at(-1)}`)
  await until(() => daemon.log.includes('/v1/images/sf_'))
  await daemon.kill()
  const token = url.split('/').at(-1)
  const hidden = [MARKER, secret, token, daemon.apiKey]
  expect(refusals.length).toBeGreaterThan(7)
  for (const each of hidden) {
    expect(daemon.log).not.toContain(each)
    for (const text of refusals) expect(text).not.toContain(each)
  }
  const files = await readdir(directories.dataDirectory, { recursive: true, withFileTypes: true })
  for (const file of files) {
    if (!file.isFile() || ['key', 'signing-secret'].includes(file.name)) continue
    const bytes = await readFile(join(file.parentPath, file.name))
    for (const each of hidden) expect(bytes.includes(each), file.name).toBe(false)
  }
})

/** In every environment that has to be there again after a restart. */
const KEPT = 'kept-5d1e07ab3c44'

test('an environment that is given to a sandbox is told in its view alone, that of a run nowhere, and both are kept in the records alone', async () => {
  await using directories = await testDirectories()
  await using daemon = await ChildDaemon.start(directories, { keepsLog: true })
  const told: string[] = []
  const ask = async (method: string, path: string, body?: object) => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) }
    const text = await (await daemon.fetch(method, path, init)).text()
    told.push(text)
    return text
  }
  const tar = smallTar('etc/motd', 'hello\n')
  const blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await daemon.fetch('PUT', `/v1/blobs/${blob}`, { body: tar })
  const from = /im_[a-z0-9]{20}/.exec(await ask('POST', '/v1/images', { kind: 'tar', blob }))?.[0]
  const env = { API_KEY: KEPT }

  const made = await (
    await daemon.fetch('POST', '/v1/sandboxes', { body: JSON.stringify({ from, env }) })
  ).text()
  expect(made).toContain(KEPT)
  const at = `/v1/sandboxes/${/sb_[a-z0-9]{20}/.exec(made)?.[0]}`
  for (const path of [`${at}/exec`, `${at}/network`]) await ask('GET', path)
  await ask('POST', `${at}/exec`, { command: ['true'] })
  await ask('POST', '/v1/sandboxes', { from, env: { ...env, 'A=B': KEPT } })
  await ask('POST', '/v1/sandboxes', { from, env, nonsense: 1 })

  const run = {
    ...{ name: 'r', kind: 'program', from, concurrency: 1, env, version: '1' },
    program: { command: 'true', env },
    grade: { kind: 'command', command: 'true', in: 'world', env },
  }
  await ask('POST', '/v1/runs', run)
  const put = await ask('POST', '/v1/runs/r/tasks', {
    tasks: [
      { key: 'a', json: '1', program: { env } },
      { key: 'b', json: '2', grade: { env } },
    ],
  })
  expect(JSON.parse(put)).toMatchObject({ added: 2 })
  await ask('POST', '/v1/runs/r/close', {})
  await until(async () => (await ask('GET', '/v1/runs/r')).includes('finished'))
  const other = { API_KEY: `${KEPT}-other` }
  const differs = await ask('POST', '/v1/runs', {
    ...run,
    env: other,
    program: { command: 'true', env: other },
  })
  expect(differs).toContain('run_differs')
  for (const path of ['', '/report', '/results', '/episodes']) await ask('GET', `/v1/runs/r${path}`)
  await ask('GET', '/v1/runs')
  await ask('GET', '/v1/audit')
  const spec = { bundle: blob, export: 'default', label: 'f', env }
  await ask('PUT', '/v1/queues/q', { kind: 'tasks', function: spec })
  await ask('GET', '/v1/queues/q')
  await ask('GET', '/metrics')
  await daemon.kill()

  for (const text of [...told, daemon.log]) expect(text).not.toContain(KEPT)
  expect(await filesWith(KEPT, directories.dataDirectory)).toEqual(['engine'])
  expect(await filesWith(KEPT, directories.runDirectory)).toEqual([])
})

/** The first parts of the paths of files below which a text is. */
async function filesWith(text: string, directory: string): Promise<string[]> {
  const found = new Set<string>()
  for (const file of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const path = join(file.parentPath, file.name)
    if ((await readFile(path)).includes(text))
      found.add(relative(directory, path).split('/')[0] ?? '')
  }
  return [...found]
}
