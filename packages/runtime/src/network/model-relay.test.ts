import { createServer, type RequestListener } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import type { ModelNews } from './model-relay.ts'
import { listening, readAll, relayBed } from './testing/relay-bed.ts'

const closing: { close(): unknown; closeAllConnections(): void }[] = []

afterEach(() => {
  for (const server of closing.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A model at `/v1`, and the sandbox's way to it; nothing else is allowed. */
async function modelBed(
  answer: RequestListener,
  { isOpen = true, gone = false, ready = Promise.resolve() } = {},
) {
  const server = await listening(createServer(answer))
  closing.push(server)
  const news: ModelNews[] = []
  const bed = relayBed('none', {
    model: {
      url: new URL(`http://127.0.0.1:${gone ? 1 : server.port}/v1`),
      ...{ ready, isOpen: () => isOpen },
      onNews: (one) => news.push(one),
    },
  })
  const ask = (request: string) => {
    const inside = bed.connect()
    inside.write(request)
    return inside
  }
  return { ...bed, ask, model: news, port: server.port }
}

const GET = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:61080\r\nConnection: close\r\n\r\n`
const echo: RequestListener = (request, response) => {
  const { url, headers } = request
  response.write(`${url} ${headers.host} ${headers['x-api']} `)
  request.pipe(response)
}

test('a request goes to the model as it is, and its answer back as it comes', async () => {
  const { ask, model, port, news } = await modelBed(echo)
  const body = 'what is six times seven?'
  const head = `POST /v1/chat?x=1 HTTP/1.1\r\nHost: here\r\nX-Api: secret\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
  const answer = await readAll(ask(head + body))
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(answer).toContain(`/v1/chat?x=1 127.0.0.1:${port} secret`)
  expect(answer).toContain(body)
  await expect.poll(() => model).toEqual([{ state: 'started' }, { state: 'ended' }])
  // Not a connection that a policy decides on.
  expect(news).toEqual([])
})

test.each(['/', '/v2', '/v1../secret', '/v1/../admin', '//elsewhere/v1', '/v10'])(
  'what is not below its path is not the model’s: %s',
  async (path) => {
    const { ask, model } = await modelBed(echo)
    expect(await readAll(ask(GET(path)))).toMatch(/^HTTP\/1\.1 404 /)
    expect(model).toEqual([])
  },
)

test('one that is closed answers nobody', async () => {
  const { ask, model } = await modelBed(echo, { isOpen: false })
  expect(await readAll(ask(GET('/v1')))).toMatch(/^HTTP\/1\.1 403 /)
  expect(model).toEqual([])
})

test('a call waits until somebody hears of it', async () => {
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  let asked = 0
  const { ask, model, relay } = await modelBed((_, response) => void response.end(`${++asked}`), {
    ready,
  })
  const answer = readAll(ask(GET('/v1')))
  const left = ask(GET('/v1'))
  await new Promise((done) => setTimeout(done, 50))
  expect([asked, model]).toEqual([0, []])
  left.destroy()
  await expect.poll(() => relay.connections).toBe(1)
  resolve()
  expect(await answer).toMatch(/1$/)
  await expect.poll(() => model).toEqual([{ state: 'started' }, { state: 'ended' }])
})

test('with a model all else is as it was', async () => {
  const { ask } = await modelBed(echo)
  expect(await readAll(ask(GET('http://example.org/v1')))).toMatch(/^HTTP\/1\.1 403 /)
})

test.each([429, 500, 503])(
  'an answer %i is a failure of the model, and is passed on',
  async (status) => {
    const { ask, model } = await modelBed((_, response) => response.writeHead(status).end('busy'))
    expect(await readAll(ask(GET('/v1/chat')))).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} .*busy`, 's'),
    )
    const failed = expect.stringContaining(`the model answered ${status}`)
    await expect.poll(() => model).toEqual([{ state: 'started' }, { state: 'ended', failed }])
  },
)

test.each([400, 401, 404])('an answer %i is the caller’s doing', async (status) => {
  const { ask, model } = await modelBed((_, response) => response.writeHead(status).end())
  expect(await readAll(ask(GET('/v1/chat')))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  await expect.poll(() => model).toEqual([{ state: 'started' }, { state: 'ended' }])
})

test('one that is not there, or breaks off, has failed', async () => {
  const there = await modelBed((_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('some')
    setImmediate(() => response.destroy())
  })
  await expect(readAll(there.ask(GET('/v1')))).rejects.toThrow('Premature close')
  const away = await modelBed(echo, { gone: true })
  expect(await readAll(away.ask(GET('/v1')))).toMatch(/^HTTP\/1\.1 502 /)
  for (const [{ model }, why] of [
    [there, 'broke off'],
    [away, 'be reached'],
  ] as const) {
    const failed = expect.stringContaining(why)
    await expect.poll(() => model[1]).toEqual({ state: 'ended', failed })
  }
})

test('a caller that leaves has seen no failure of the model', async () => {
  const asked = Promise.withResolvers<void>()
  const { ask, model } = await modelBed(() => asked.resolve())
  const inside = ask(GET('/v1'))
  await asked.promise
  inside.destroy()
  await expect.poll(() => model).toEqual([{ state: 'started' }, { state: 'ended' }])
})
