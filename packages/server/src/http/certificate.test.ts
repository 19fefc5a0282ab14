import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { CONNECT_REVISION, CONNECT_REVISION_HEADER } from '@sandlot/protocol'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'
import { readCertificate, type TlsFiles } from './certificate.ts'

const run = promisify(execFile)
let place: Awaited<ReturnType<typeof temporaryDirectory>>
const first: TlsFiles = { cert: '', key: '' }
const second: TlsFiles = { cert: '', key: '' }

beforeAll(async () => {
  place = await temporaryDirectory()
  Object.assign(first, await made('first'))
  Object.assign(second, await made('second'))
})
afterAll(() => place[Symbol.asyncDispose]())

/** A certificate of its own, for 127.0.0.1. */
async function made(name: string): Promise<TlsFiles> {
  const directory = join(place.path, name)
  await mkdir(directory)
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
    ...['-keyout', files.key, '-out', files.cert, '-days', '2', '-subj', `/CN=${name}`],
    ...['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'],
  ])
  return files
}

/** Status, body, and whose certificate it was. */
async function get(at: TestDaemon, ca: string, path = '/healthz') {
  const { promise, resolve, reject } = Promise.withResolvers<{ body: string; name: string }>()
  const headers = { authorization: `Bearer ${at.daemon.apiKey}` }
  const sent = request(at.url + path, { ca, headers, agent: false }, async (answer) => {
    const socket = answer.socket as TLSSocket
    const name = String(socket.getPeerCertificate().subject.CN)
    resolve({ body: await text(answer), name })
  })
  sent.on('error', reject)
  sent.end()
  return await promise
}

test('HTTP and the WebSocket over TLS, by a certificate that may be renewed meanwhile', async () => {
  const directory = join(place.path, 'used')
  await mkdir(directory)
  const used = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  await copyFile(first.cert, used.cert)
  await copyFile(first.key, used.key)
  await using at = await startTestDaemon({ daemon: { tls: used } })
  expect(at.url).toMatch(/^https:/)
  const ca = await readFile(first.cert, 'utf8')
  expect(await get(at, ca)).toMatchObject({ name: 'first' })
  expect((await get(at, ca, '/v1/sandboxes')).body).toContain('items')
  await expect(get(at, await readFile(second.cert, 'utf8'))).rejects.toThrow(/self.signed/)

  const headers = {
    authorization: `Bearer ${at.daemon.apiKey}`,
    [CONNECT_REVISION_HEADER]: `${CONNECT_REVISION}`,
  }
  const socket = new WebSocket(`${at.url.replace('https', 'wss')}/v1/connect`, { ca, headers })
  await new Promise((resolve, reject) => socket.once('message', resolve).once('error', reject))

  // A half of the new pair doesn't fit the other: the old one stays.
  await copyFile(second.key, `${used.key}.new`)
  await rename(`${used.key}.new`, used.key)
  process.emit('SIGHUP', 'SIGHUP')
  expect(await get(at, ca)).toMatchObject({ name: 'first' })
  await copyFile(second.cert, used.cert)
  process.emit('SIGHUP', 'SIGHUP')
  const renewed = await readFile(second.cert, 'utf8')
  await until(async () => (await get(at, renewed).catch(() => undefined))?.name === 'second')
  expect(socket.readyState).toBe(WebSocket.OPEN)
  socket.terminate()
})

test('a pair that can’t be is refused with its file', async () => {
  const not = join(place.path, 'not.pem')
  await writeFile(not, 'no certificate')
  const missing = join(place.path, 'missing')
  const refused = (files: TlsFiles, nowMs = Date.now()) =>
    readCertificate(files, nowMs).then(
      () => 'ok',
      (error: Error) => error.message,
    )
  expect(await refused(first)).toBe('ok')
  expect(await refused({ ...first, cert: missing })).toContain(`${missing} can’t be read: ENOENT`)
  expect(await refused({ ...first, cert: not })).toContain('is no PEM file of a certificate')
  expect(await refused({ ...first, key: not })).toContain('is no PEM file of a key')
  expect(await refused({ ...first, key: second.key })).toContain(
    'is not the key of the certificate',
  )
  expect(await refused(first, Date.now() + 3 * 86_400_000)).toContain('expired at')
  await expect(startTestDaemon({ daemon: { tls: { ...first, key: second.key } } })).rejects.toThrow(
    'is not the key',
  )
})
