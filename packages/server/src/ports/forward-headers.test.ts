import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { headersOutward } from './forward-headers.ts'

test.each([
  ['http://localhost:8000/a?b', '/p/t/a?b'],
  ['https://127.0.0.1:8000', '/p/t/'],
  ['//localhost:8000/a', '/p/t/a'],
  ['/a', '/p/t/a'],
  ['a/b', 'a/b'],
  ['//example.org/a', '//example.org/a'],
  ['http://localhost:8001/a', 'http://localhost:8001/a'],
  ['http://localhost:80000/a', 'http://localhost:80000/a'],
  ['http://localhost:8000.example.org/a', 'http://localhost:8000.example.org/a'],
])('a server on port 8000 that leads to %s leads its client to %s', (said, told) => {
  const message = (rawHeaders: string[] = []) => ({ headers: {}, rawHeaders }) as IncomingMessage
  const view = { port: 8_000, prefix: '/p/t', protocol: 'http', hasKey: false }
  const [name, value] = headersOutward(message(['Location', said]), message(), view)
  expect([name, value]).toEqual(['Location', told])
})
