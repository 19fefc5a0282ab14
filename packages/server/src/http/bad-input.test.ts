import { request } from 'node:http'
import {
  ERROR_CATALOGUE,
  errorEnvelope,
  newId,
  ROUTES,
  type Route,
  type RouteName,
} from '@sandlot/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'

let at: TestDaemon
beforeAll(async () => {
  at = await startTestDaemon()
})
afterAll(() => at[Symbol.asyncDispose]())

/** Every answer to nonsense is an envelope that blames the caller and says what to do. */
function checkRefusal(reply: { status: number; text: string }): void {
  expect(reply.status).toBeGreaterThanOrEqual(400)
  expect(reply.status).toBeLessThan(500)
  const { error } = errorEnvelope.parse(JSON.parse(reply.text))
  expect(error.hint.length).toBeGreaterThan(10)
  expect(error.message.length).toBeLessThan(2_100)
  expect(ERROR_CATALOGUE[error.code].status).toBe(reply.status)
  expect(error.code).not.toBe('internal')
}

const GARBAGE_PARAMETERS = ['..%2f..%2fetc', '%00', 'x'.repeat(300), '%F0%9F%92%A5', "';drop"]
const GARBAGE_BODIES = ['', '{', 'null', '[]', '"text"', '{"unknown":1}', '\xff\xfe', '1e999']

const named = (Object.keys(ROUTES) as RouteName[]).filter((name) => ROUTES[name].path.includes(':'))

describe.each(named)('%s', (name) => {
  const { method, path } = ROUTES[name]
  test.each(GARBAGE_PARAMETERS)('of nothing that can be: %s', async (garbage) => {
    const reply = await at.ask(method, path.replace(/:[a-z]+/g, garbage), body(name))
    if (method === 'HEAD') expect(reply.status).toBeGreaterThanOrEqual(400)
    else checkRefusal(reply)
  })
})

const withBody = (Object.keys(ROUTES) as RouteName[]).filter((name) => {
  const route: Route = ROUTES[name]
  return route.body !== undefined && route.body !== 'bytes'
})

describe.each(withBody)('%s', (name) => {
  const { method } = ROUTES[name]
  test.each(GARBAGE_BODIES)('with a body of nonsense: %j', async (garbage) => {
    const reply = await at.ask(method, known(name), {
      body: Buffer.from(garbage, 'latin1'),
      headers: { 'content-type': 'application/json' },
    })
    // An empty body is fine where nothing in it is needed; the address is of nothing then.
    checkRefusal(reply)
  })

  test('with a body that is too large', async () => {
    const reply = await at.ask(method, known(name), { body: Buffer.alloc(9 * 2 ** 20, ' ') })
    expect(reply).toMatchObject({ status: 413, code: 'too_large' })
    checkRefusal(reply)
  })
})

test.each([
  ['GET', '/v1/sandboxes?limit=0'],
  ['GET', '/v1/sandboxes?limit=x'],
  ['GET', '/v1/sandboxes?state=odd'],
  ['GET', '/v1/sandboxes?limit=1&limit=2'],
  ['GET', '/v1/sandboxes?nonsense=1'],
  ['GET', '/v1/images?limit=-1'],
  ['GET', '/v1/runs?state=odd'],
  ['GET', `/v1/sandboxes/${newId('sandbox')}/files`],
  ['GET', `/v1/sandboxes/${newId('sandbox')}/files?path=`],
  ['GET', `/v1/sandboxes/${newId('sandbox')}/files?path=%00`],
  ['GET', `/v1/sandboxes/${newId('sandbox')}/files?path=/a&world=other`],
  ['GET', '/v1/connect'],
  ['GET', '/'],
  ['GET', '/v2/sandboxes'],
  ['PATCH', '/v1/sandboxes'],
  ['DELETE', '/healthz'],
  ['GET', '/v1/blobs/sha256:xyz'],
  ['POST', '/v1/images'],
])('%s %s', async (method, path) => {
  checkRefusal(await at.ask(method, path))
})

test.each([
  [{ from: 'x', resources: { memory: '12 parsecs' } }, 'body.resources.memory'],
  [{ from: 'x', resources: { cpu: -1 } }, 'body.resources.cpu'],
  [{ from: 'x', resources: { cpu: { request: 2, limit: 1 } } }, 'body.resources.cpu'],
  [{ from: 'x', keepWarm: 'soon' }, 'body.keepWarm'],
  [{ from: 'x', workdir: 'relative' }, 'body.workdir'],
  [{ from: 'x', env: { 'A=B': '1' } }, 'body.env'],
  [{ from: 'x', network: 'all' }, 'body.network'],
  [{ from: 'x', extra: 1 }, 'extra'],
])('a bad field is named: %j', async (json, named) => {
  const reply = await at.ask('POST', '/v1/sandboxes', { json })
  checkRefusal(reply)
  expect(JSON.parse(reply.text).error.message).toContain(named)
})

test('a head that is too long, or no HTTP at all, ends that connection alone', async () => {
  const { port } = new URL(at.url)
  const status = await new Promise((resolve, reject) => {
    const headers = { 'x-long': 'x'.repeat(64 * 1024) }
    const sent = request({ port, path: '/healthz', headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject)
    sent.end()
  })
  expect(status).toBe(431)
  expect((await at.ask('GET', '/healthz')).status).toBe(200)
})

function known(name: RouteName): string {
  return ROUTES[name].path.replace(':id', newId('sandbox')).replace(/:[a-z]+/g, 'known')
}

function body(name: RouteName) {
  const route: Route = ROUTES[name]
  if (route.body === 'bytes') return { body: 'bytes' }
  return route.body === undefined ? {} : { json: {} }
}
