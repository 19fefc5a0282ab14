import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SandlotError } from '@sandlot/protocol'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Address } from './address.ts'
import { Http } from './http.ts'
import { Notices } from './notices.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

let server: Server
let port: number
let lookUps: number
let http: Http
/** What the server does with one request after another; the last goes on. */
let answers: Answer[]
let seen: {
  method: string
  url: string
  key: string | undefined
  auth: string | undefined
  body: string
}[]

beforeEach(async () => {
  answers = []
  seen = []
  lookUps = 0
  await listen(0)
  http = new Http(
    new Address(
      async () => {
        lookUps++
        return { url: `http://127.0.0.1:${port}`, apiKey: 'secret' }
      },
      new Notices(() => {}),
    ),
  )
})
afterEach(async () => {
  http.close()
  await close()
})

async function listen(on: number): Promise<void> {
  server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const { method = '', url = '', headers } = request
    const key = headers['idempotency-key'] as string | undefined
    seen.push({ method, url, key, auth: headers.authorization, body })
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(on, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
}

function close(): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

const json =
  (value: unknown, status = 200): Answer =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
const failure = (code: 'capacity' | 'run_exists' | 'draining') => {
  const error = new SandlotError(code, 'because', { details: { n: 1 } })
  return json(error.toEnvelope(), error.status)
}
const cut: Answer = (request) => request.socket.destroy()

describe('a request', () => {
  test('carries key, query and body', async () => {
    answers = [json({ items: [], next: null })]
    const query = { limit: 5, state: undefined, tag: ['a=1', 'b=ü'] }
    await http.json('listSandboxes', { query })
    await http.json('createRun', { json: { name: 'x' } })
    expect(seen).toEqual([
      {
        method: 'GET',
        url: '/v1/sandboxes?limit=5&tag=a%3D1&tag=b%3D%C3%BC',
        key: undefined,
        auth: 'Bearer secret',
        body: '',
      },
      expect.objectContaining({
        method: 'POST',
        key: expect.stringMatching(/./),
        body: '{"name":"x"}',
      }),
    ])
    expect(lookUps).toBe(1)
  })

  test('is sent again with the same key, where that helps', async () => {
    answers = [failure('capacity'), json({}), cut, failure('draining'), json({ id: 1 })]
    await http.json('createRun', { json: {} })
    expect(await http.json('createRun', { json: {} })).toEqual({ id: 1 })
    const keys = seen.map(({ key }) => key)
    expect(keys[1]).toBe(keys[0])
    expect(new Set(keys.slice(2)).size).toBe(1)
    expect(keys[2]).not.toBe(keys[0])
    expect(seen).toHaveLength(5)
  })

  test('is not sent again, where that does not help', async () => {
    answers = [failure('run_exists')]
    await expect(http.json('createRun', { json: {} })).rejects.toMatchObject({
      code: 'run_exists',
      details: { n: 1 },
      hint: /ifExists/,
    })
    expect(seen).toHaveLength(1)
  })

  test('sends a streamed body from its beginning again', async () => {
    answers = [json({}), cut, json({})]
    await http.json('getRun', { parameters: { name: 'x' } })
    const bytes = () => new Response('content').body as ReadableStream<Uint8Array>
    await http.send('putBlob', { parameters: { digest: 'sha256:x' }, bytes })
    expect(seen.slice(1).map(({ body }) => body)).toEqual(['content', 'content'])
  })

  test('tells what is not there from what can not be asked', async () => {
    answers = [json({}, 404), json({}, 200)]
    const parameters = { digest: 'sha256:x' }
    expect(await http.exists('headBlob', { parameters })).toBe(false)
    expect(await http.exists('headBlob', { parameters })).toBe(true)
    expect(seen).toHaveLength(2)
  })
})

describe('an outage', () => {
  test('is told at once before the daemon was met', async () => {
    await close()
    // One that was let go of may be another program's by now.
    port = 2
    await expect(http.json('listRuns')).rejects.toMatchObject({ code: 'unreachable' })
  })

  test('that is a start is waited out also before', async () => {
    const starting = new SandlotError('draining', 'it starts', { details: { starting: true } })
    const refused = json(starting.toEnvelope(), starting.status)
    answers = [refused, refused, json({ n: 1 })]
    expect(await http.json('listRuns')).toEqual({ n: 1 })
  })

  test('that is an end is told at once before', async () => {
    answers = [failure('draining'), json({})]
    await expect(http.json('listRuns')).rejects.toMatchObject({ code: 'draining' })
    expect(seen).toHaveLength(1)
  })

  test('is waited out afterwards, and the daemon looked up again', async () => {
    answers = [json({ n: 1 })]
    await http.json('listRuns')
    await close()
    const waiting = http.json('listRuns')
    await listen(0)
    expect(await waiting).toEqual({ n: 1 })
    expect(lookUps).toBeGreaterThan(1)
  })

  test('ends with the signal, and with the client', async () => {
    answers = [json({})]
    await http.json('listRuns')
    answers = [() => undefined]
    const controller = new AbortController()
    const first = http.json('listRuns', { signal: controller.signal })
    const second = http.json('listRuns')
    controller.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    http.close()
    await expect(second).rejects.toMatchObject({ code: 'cancelled' })
    await expect(http.json('listRuns')).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('an answer', () => {
  test('of a stranger is told as such', async () => {
    answers = [
      (_, response) => response.writeHead(404).end('<html>'),
      (_, response) => response.writeHead(200).end('<html>'),
    ]
    const hint = /Is SANDLOT_URL/
    await expect(http.json('listRuns')).rejects.toMatchObject({ code: 'route_unknown', hint })
    await expect(http.json('listRuns')).rejects.toMatchObject({ code: 'route_unknown', hint })
    expect(seen).toHaveLength(2)
  })

  test('that breaks off in the middle is no end', async () => {
    answers = [
      (request, response) => {
        response.writeHead(200).write('half')
        setImmediate(() => request.socket.destroy())
      },
    ]
    const parts: string[] = []
    const reading = (async () => {
      const digest = 'sha256:x'
      for await (const part of http.bytes('getBlob', { parameters: { digest } })) {
        parts.push(Buffer.from(part).toString())
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'connection_lost' })
    expect(parts).toEqual(['half'])
  })
})
