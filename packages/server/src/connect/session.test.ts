import { EventEmitter } from 'node:events'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { type Session, serveSocket } from './session.ts'

test('a connection with frames that are none is told of once, in one line for whoever looks for it', () => {
  const lines: { level: number; msg: string; reason: string }[] = []
  const log = pino({ level: 'debug' }, { write: (line) => lines.push(JSON.parse(line)) })
  const codes: number[] = []
  const socket = Object.assign(new EventEmitter(), {
    ...{ OPEN: 1, readyState: 1, bufferedAmount: 0, send() {}, terminate() {} },
    close: (code: number) => codes.push(code),
  })
  serveSocket(socket as unknown as WebSocket, { log } as unknown as Session)
  for (let each = 0; each < 3; each += 1) socket.emit('message', Buffer.from('no frame'), true)
  socket.emit('close')
  expect(codes).toEqual([1002])
  expect(lines).toMatchObject([
    { level: 20, msg: 'a client broke the protocol', reason: expect.stringMatching(/^malformed/) },
  ])
  expect(JSON.stringify(lines)).not.toContain('    at ')
})
