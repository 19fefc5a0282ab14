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
import { connect } from '../testing/client.ts'
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
  [{ from: 'x', network: { allow: ['a.example', '*.127.0.0.1'] } }, 'allow.1: "*.127.0.0.1" is an'],
  [{ from: 'x', network: 7 }, 'body.network: expected "open" or "none" or "packages" or object'],
  [{ from: 'x', extra: 1 }, 'extra'],
])('a bad field is named: %j', async (json, named) => {
  const reply = await at.ask('POST', '/v1/sandboxes', { json })
  checkRefusal(reply)
  expect(JSON.parse(reply.text).error.message).toContain(named)
})

test('a policy of too many hosts names the limit', async () => {
  const allow = Array(300).fill('a.example')
  const reply = await at.ask('POST', '/v1/sandboxes', { json: { from: 'x', network: { allow } } })
  checkRefusal(reply)
  expect(JSON.parse(reply.text).error.message).toContain('network.allow: at most 256 hosts')
})

test.each([
  ['lifetime', [0, '1ms', 0.2, '999ms'], "Give at least '1s', or leave it out for no end."],
  ['keepWarm', [0, '1ms'], "Give at least '1s', or leave it out for 10 minutes."],
])('a %s that no sandbox can have names the least', async (field, values, hint) => {
  for (const value of values) {
    const reply = await at.ask('POST', '/v1/sandboxes', { json: { from: 'x', [field]: value } })
    expect(reply.json).toMatchObject({
      error: {
        code: 'invalid_request',
        message: `body.${field}: shorter than 1s, the least that is possible`,
        hint,
      },
    })
  }
})

test('a command that is too long names the limit and what to do', async () => {
  const { id } = await at.sandbox()
  for (const command of ['x'.repeat(200_000), ['echo', 'x'.repeat(200_000)]]) {
    const reply = await at.ask('POST', `/v1/sandboxes/${id}/exec`, { json: { command } })
    checkRefusal(reply)
    expect(JSON.parse(reply.text).error.message).toBe(
      'body.command: longer than 49152 bytes: write it to a file in the sandbox and run that',
    )
  }
})

test('deadlines of nothing name the least', async () => {
  const { id } = await at.sandbox()
  const ask = async (path: string, json: object) => (await at.ask('POST', path, { json })).json
  expect(await ask(`/v1/sandboxes/${id}/exec`, { command: 'true', timeout: 0 })).toMatchObject({
    error: { code: 'invalid_request', hint: expect.stringContaining("'1ms'") },
  })
  for (const phase of ['create', 'setup', 'agent', 'model', 'grade', 'total']) {
    const run = {
      name: 'a',
      kind: 'worker',
      from: 'x',
      concurrency: 1,
      timeout: { [phase]: '1ms' },
    }
    expect(await ask('/v1/runs', run)).toMatchObject({
      error: { message: expect.stringContaining(phase), hint: expect.stringContaining("'100ms'") },
    })
  }
})

test('deadlines beyond what a timer waits name the most, and are no early end', async () => {
  const { id } = await at.sandbox()
  const ask = (path: string, json: object) => at.ask('POST', path, { json })
  const run = { name: 'a', kind: 'worker', from: 'x', concurrency: 1, timeout: { agent: '30d' } }
  for (const reply of [
    await ask(`/v1/sandboxes/${id}/exec`, { command: 'true', timeout: '25d' }),
    await ask('/v1/runs', run),
    await ask('/v1/templates', { source: { kind: 'id', id: 'x' }, readyTimeout: 2 ** 31 }),
  ]) {
    expect(reply.json).toMatchObject({
      error: { code: 'invalid_request', hint: expect.stringContaining("at most '20d'") },
    })
  }
  const long = await ask(`/v1/sandboxes/${id}/exec`, { command: 'true', timeout: '20d' })
  expect(long.json).toMatchObject({ exitCode: 0, timedOut: false })
})

test.each(['', 'x', 'http://[', 'ftp://a', 'http://u:p@a/', 'http://a/?q', 'http://a/#f'])(
  'what is no address of a model is refused: %j',
  async (url) => {
    const program = { command: 'true', model: { url } }
    const run = { name: 'a', kind: 'program', from: 'x', concurrency: 1, program }
    const reply = await at.ask('POST', '/v1/runs', { json: run })
    checkRefusal(reply)
    expect(reply.text).toContain('body.program.model.url')
  },
)

const NO_NAMES = [' ', 'a\0b', '%00', '💥', '../x', 'im_ ', 'x'.repeat(200)]

test.each(NO_NAMES)(
  'what no start and no run can be called is there for nobody: %j',
  async (name) => {
    const run = { name: 'a', kind: 'worker', concurrency: 1, from: name }
    for (const [path, json] of [
      ['/v1/sandboxes', { from: name }],
      ['/v1/runs', run],
      ['/v1/runs/a/attach', run],
    ] as const) {
      checkRefusal(await at.ask('POST', path, { json }))
    }
    using client = await connect(at)
    const worker = client.open({
      op: 'worker',
      run: name,
      worker: newId('worker'),
      slots: 1,
      held: [],
    })
    await expect(worker.done).rejects.toMatchObject({ code: 'run_unknown' })
  },
)

describe.each([
  ['a NUL character', 'a\0b', /NUL/],
  ['half a character', '/a\ud800', /half a character/],
])('%s is refused wherever it would reach the kernel', (_, bad, message) => {
  const command = ['true']
  const exec = { command }
  const run = { name: 'a', kind: 'worker', from: 'x', concurrency: 1 }
  const grade = { kind: 'command', command, in: 'world' }
  const build = (step: object) => ({
    kind: 'built',
    base: { kind: 'debian', suite: 'bookworm', packages: [] },
    steps: [step],
  })
  test.each([
    ['create env value', '/v1/sandboxes', { from: 'x', env: { A: bad } }],
    ['create env name', '/v1/sandboxes', { from: 'x', env: { [bad]: 'x' } }],
    ['create workdir', '/v1/sandboxes', { from: 'x', workdir: `/${bad}` }],
    ['create user', '/v1/sandboxes', { from: 'x', user: bad }],
    ['exec text', 'exec', { command: bad }],
    ['exec argument', 'exec', { command: ['echo', bad] }],
    ['exec env value', 'exec', { ...exec, env: { A: bad } }],
    ['exec env name', 'exec', { ...exec, env: { [bad]: '1' } }],
    ['exec cwd', 'exec', { ...exec, cwd: bad }],
    ['exec user', 'exec', { ...exec, user: bad }],
    ['run env', '/v1/runs', { ...run, env: { A: bad } }],
    ['run workdir', '/v1/runs', { ...run, workdir: `/${bad}` }],
    ['run user', '/v1/runs', { ...run, user: bad }],
    ['run setup', '/v1/runs', { ...run, setup: [['echo', bad]] }],
    ['grade command', '/v1/runs', { ...run, grade: { ...grade, command: bad } }],
    ['grade env', '/v1/runs', { ...run, grade: { ...grade, env: { A: bad } } }],
    ['grade cwd', '/v1/runs', { ...run, grade: { ...grade, cwd: bad } }],
    ['grade user', '/v1/runs', { ...run, grade: { ...grade, user: bad } }],
    [
      'grade file',
      '/v1/runs',
      { ...run, grade: { ...grade, files: [{ path: `/${bad}`, blob: 'b', mode: 0o644 }] } },
    ],
    ['build run', '/v1/images', build({ kind: 'run', command: bad })],
    ['build run env', '/v1/images', build({ kind: 'run', command: 'true', env: { A: bad } })],
    ['build env', '/v1/images', build({ kind: 'env', env: { A: bad } })],
    ['build workdir', '/v1/images', build({ kind: 'workdir', path: bad })],
    ['build user', '/v1/images', build({ kind: 'user', user: bad })],
    ['build shell', '/v1/images', build({ kind: 'shell', command: [bad] })],
    ['build command', '/v1/images', build({ kind: 'command', command: [bad] })],
    ['build copy', '/v1/images', build({ kind: 'copy', blob: 'b', to: bad })],
  ])('%s', async (_, path, json) => {
    const { id } = await at.sandbox()
    const url = path === 'exec' ? `/v1/sandboxes/${id}/exec` : path
    const reply = await at.ask('POST', url, { json })
    expect(reply.json).toMatchObject({
      error: { code: 'invalid_request', message: expect.stringMatching(message) },
    })
  })
})

test.each([
  ['a name', { name: 'a\ud800' }, 'body.name'],
  ['the name of a tag', { tags: { 'a\udc00': 'x' } }, 'body.tags'],
  ['a tag', { tags: { a: '\ud800' } }, 'body.tags.a'],
])('half a character is refused in %s', async (_, more, named) => {
  const { id } = await at.sandbox()
  const json = { kind: 'filesystem', ...more }
  const reply = await at.ask('POST', `/v1/sandboxes/${id}/snapshots`, { json })
  expect(reply.code).toBe('invalid_request')
  const { message } = JSON.parse(reply.text).error
  expect(message).toMatch(/^body\.\S+: holds half a character/)
  expect(message).toContain(named)
})

test('a name that no map can have is refused, however it is written, and never lost', async () => {
  const { id } = await at.sandbox()
  const ask = (path: string, body: string) =>
    at.ask('POST', path, { body, headers: { 'content-type': 'application/json' } })
  for (const name of ['__proto__', '\\u005f_proto\\u005f_']) {
    const tagged = `{"kind":"filesystem","tags":{"${name}":"x"}}`
    const reply = await ask(`/v1/sandboxes/${id}/snapshots`, tagged)
    expect(reply).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(reply.text).toContain('body.tags.__proto__')
    expect((await ask(`/v1/sandboxes/${id}/exec`, `{"command":["${name}"]}`)).status).toBe(200)
  }
  const task = { name: 'proto', kind: 'worker', from: await at.image(), concurrency: 1 }
  expect((await ask('/v1/runs', JSON.stringify(task))).status).toBe(200)
  const tasks = { tasks: [{ key: 'a', json: '{"__proto__":1}' }] }
  expect((await ask('/v1/runs/proto/tasks', JSON.stringify(tasks))).status).toBe(200)
  await at.ask('POST', '/v1/runs/proto/cancel')
  const deep = `${'['.repeat(1_000_000)}"\\u0041"${']'.repeat(1_000_000)}`
  expect(await ask('/v1/runs', deep)).toMatchObject({ status: 400, code: 'invalid_request' })
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
