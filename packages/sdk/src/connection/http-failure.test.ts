import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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
