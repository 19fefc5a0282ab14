import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HttpBindings } from '@hono/node-server'
import { errorEnvelope } from '@sandlot/protocol'
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { until } from '../testing/until.ts'
import { checkPace } from './body.ts'
import { listen } from './listen.ts'

async function serve(limits: Partial<Parameters<typeof listen>[3]>, onAsked = () => {}) {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.all('*', (context) => {
    onAsked()
    return context.text('here')
  })
  const at = { host: '127.0.0.1', port: 0 }
  const { server, port } = await listen(
    app,
    at,
    { takes: () => false },
    { ...SERVER_LIMITS, ...limits },
  )
  const sockets: Socket[] = []
  return {
    server,
    open: async () => {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('one connection too many is told so, and a free place is taken again', async () => {
  await using at = await serve({ connections: 3 })
  const held = [await at.open(), await at.open(), await at.open()]
  const reply = await text(await at.open())
  expect(reply).toMatch(/^HTTP\/1\.1 429 Refused\r\n/)
  expect(reply).toContain('retry-after: 1')
  const { error } = errorEnvelope.parse(JSON.parse(reply.split('\r\n\r\n')[1] ?? ''))
  expect(error).toMatchObject({
    code: 'rate_limited',
    message: 'this daemon has 3 connections open',
  })
  held[0]?.destroy()
  await until(async () => {
    const socket = await at.open()
    socket.end('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    return (await text(socket)).includes('here')
  })
})

test('what a connection too many asks for is not done: it is told that it was refused', async () => {
  let asked = 0
  await using at = await serve({ connections: 1 }, () => {
    asked += 1
  })
  await at.open()
  const refused = await at.open()
  refused.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n')
  expect(await text(refused)).toMatch(/^HTTP\/1\.1 429 Refused\r\n/)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(asked).toBe(0)
})

test.each([
  ['says nothing', ''],
  ['sends its headers line by line and never ends', 'GET / HTTP/1.1\r\nhost: a\r\n'],
])('a client that %s is given up', async (_, head) => {
  await using at = await serve({ headersMs: 50, connectionsEveryMs: 20 })
  const socket = await at.open()
  socket.write(head)
  expect(await text(socket)).toMatch(/^(HTTP\/1\.1 408 |$)/)
})

test('a body may be slow for a while, and may wait for its sandbox for ever, but not trickle', () => {
  const { trickleMs } = SERVER_LIMITS
  expect(() => checkPace(1, trickleMs)).not.toThrow()
  expect(() => checkPace(1, trickleMs + 1)).toThrow('the body comes too slowly: 1 bytes in 300')
  expect(() => checkPace(64 * 301, 301_000)).not.toThrow()
})
