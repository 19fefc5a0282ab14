import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { expect, test } from 'vitest'
import { failedFetch } from './http-failure.ts'
import { openSocket } from './socket.ts'

test('a daemon without TLS that is asked by https is said to have none, with its right address', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `https://127.0.0.1:${port}`
  const said = {
    code: 'unreachable',
    message: expect.stringContaining('speaks no TLS'),
    hint: expect.stringContaining(`http://127.0.0.1:${port},`),
  }
  const thrown = await fetch(url).catch((error: unknown) => error)
  expect(failedFetch(thrown, url)).toMatchObject(said)
  await expect(openSocket({ url, apiKey: 'sk_none' })).rejects.toMatchObject(said)
  server.close()
})

test('a daemon with TLS that is asked by http may be just that, with its right address', async () => {
  // As OpenSSL does with bytes that are no TLS.
  const server = createTcpServer((socket) => socket.once('data', () => socket.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const said = { hint: expect.stringContaining(`https://127.0.0.1:${port}.`) }
  const thrown = await fetch(url).catch((error: unknown) => error)
  expect(failedFetch(thrown, url)).toMatchObject(said)
  await expect(openSocket({ url, apiKey: 'sk_none' })).rejects.toMatchObject(said)
  server.close()
})

test('whose request breaks off is told that it may have happened, and then of TLS', () => {
  const thrown = new TypeError('fetch failed', { cause: new Error('other side closed') })
  const { hint } = failedFetch(thrown, 'http://127.0.0.1:8760')
  expect(hint).toMatch(/^The connection to the daemon broke: what was asked may or may not have/)
  expect(failedFetch(thrown, 'https://a.example').hint).not.toContain('certificate')
})
