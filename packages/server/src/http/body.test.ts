import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { readBytes, readJson } from './body.ts'

test.each([
  ['a JSON body', readJson],
  ['a streamed body', (incoming: IncomingMessage) => Array.fromAsync(readBytes(incoming))],
])('a client that leaves in the middle of %s is no failure of the daemon', async (_what, read) => {
  const { promise: reading, resolve } = Promise.withResolvers<Promise<unknown>>()
  const server = createServer((incoming) => resolve(read(incoming)))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{')
  server.on('request', () => client.destroy())
  await expect(reading).rejects.toMatchObject({ code: 'cancelled' })
  await new Promise((closed) => server.close(closed))
})
