import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CONNECT_REVISION, CONNECT_REVISION_HEADER, SandlotError } from '@sandlot/protocol'
import { Mux, type PayloadMap } from '@sandlot/protocol/frames'
import { describe, expect, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { openSocket } from './socket.ts'

/** A daemon that greets with this, and no more. */
async function greeting(hello: PayloadMap) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const said: unknown[] = []
  server.on('connection', (socket: WebSocket, request) => {
    said.push(request.headers[CONNECT_REVISION_HEADER])
    const write = (bytes: Uint8Array) => {
      socket.send(bytes)
      return true
    }
    const transport = { write, onDrain() {} }
    new Mux({ side: 'dialled', transport }).hello(hello)
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    said,
    endpoint: { url: `http://127.0.0.1:${port}`, apiKey: 'sk_any' },
    [Symbol.dispose]: () => server.close(),
  }
}

/** Who wants in hears this from the daemon. */
async function refusing(body: string) {
  const server = createServer().on('upgrade', (_request, duplex) => {
    const length = Buffer.byteLength(body)
    duplex.end(
      `HTTP/1.1 426 Refused\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n${body}`,
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    endpoint: { url: `http://127.0.0.1:${port}`, apiKey: 'sk_any' },
    [Symbol.dispose]: () => server.close(),
  }
}

describe('a client says the revision of the protocol that it speaks', () => {
  test('and goes on with a daemon that speaks the same', async () => {
    using daemon = await greeting({ protocol: CONNECT_REVISION, server: '0.1.0', session: 'x' })
    const socket = await openSocket(daemon.endpoint)
    expect(socket.isOver).toBe(false)
    socket.close()
    await socket.closed
    expect(daemon.said).toEqual([`${CONNECT_REVISION}`])
  })

  test.each([
    [
      { protocol: 1, server: '0.0.1', session: 'x' },
      /^the daemon is the older one: .* \(0\.0\.1\)/,
    ],
    [{ protocol: 99, server: '9.1.0', session: 'x' }, /^the client is the older one: .* 99$/],
  ])('and goes no further with another: %j', async (hello, message) => {
    using daemon = await greeting(hello)
    await expect(openSocket(daemon.endpoint)).rejects.toMatchObject({
      code: 'protocol_differs',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/Install version 9\.1\.0 |Start the daemon of the client/),
    })
  })
  test('and passes on why a daemon refuses it, or that no daemon did', async () => {
    const error = new SandlotError('protocol_differs', 'too old', { hint: 'Install it.' })
    using daemon = await refusing(JSON.stringify(error.toEnvelope()))
    const said = { code: 'protocol_differs', message: 'too old', hint: 'Install it.' }
    await expect(openSocket(daemon.endpoint)).rejects.toMatchObject(said)
    using stranger = await refusing('<html>')
    await expect(openSocket(stranger.endpoint)).rejects.toMatchObject({ code: 'route_unknown' })
  })
})
