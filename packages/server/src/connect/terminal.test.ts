import { newId } from '@sandlot/protocol'
import type { FakeScript } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

const STDIN = 0
const STDOUT = 1

/** Says what it runs and where, and again when that changes; ends at `exit N`. */
const shell: FakeScript = ({ argv, env, terminal }) => ({
  stdout: `${argv.join(' ')} ${env.TERM} ${terminal?.columns}x${terminal?.rows}\n`,
  types: (typed, { columns, rows }) => {
    if (typed.startsWith('exit')) return { exitCode: Number(typed.slice(5)) }
    return { prints: typed === '' ? `${columns}x${rows}\n` : `<${typed}>` }
  },
})

const start = (sandbox: string, more = {}) => ({
  op: 'exec.start' as const,
  sandbox,
  exec: newId('exec'),
  stdin: true,
  mode: 'stream' as const,
  terminal: { columns: 80, rows: 24 },
  ...more,
})

async function given() {
  const at = await startTestDaemon({ script: shell })
  const { id } = await at.sandbox()
  await at.ask('PUT', `/v1/sandboxes/${id}/files?path=/bin/sh&mode=493`, { body: 'x' })
  return { at, id, execs: `/v1/sandboxes/${id}/execs` }
}

test('a terminal runs the shell, is typed at and resized, and ends with its code', async () => {
  const { at, id, execs } = await given()
  await using _ = at
  using client = await connect(at)
  const request = start(id)
  const stream = client.open(request)
  const shown = stream.read(STDOUT)[Symbol.asyncIterator]()
  const next = async () => Buffer.from((await shown.next()).value ?? '').toString()
  expect(await next()).toBe('/bin/sh xterm-256color 80x24\n')
  await stream.send(STDIN, Buffer.from('ls'))
  expect(await next()).toBe('<ls>')
  const size = { columns: 132, rows: 43 }
  const resized = await at.ask('POST', `${execs}/${request.exec}/resize`, { json: size })
  expect(resized).toMatchObject({ status: 200, json: size })
  expect(await next()).toBe('132x43\n')
  const listed = await at.ask('GET', execs)
  expect(listed.json).toMatchObject({ items: [{ exec: request.exec, terminal: {} }] })
  await stream.send(STDIN, Buffer.from('exit 7'))
  expect(await stream.done).toMatchObject({ exitCode: 7 })
})

test('whoever attaches reads on and types; the one before is told', async () => {
  const { at, id } = await given()
  await using _ = at
  using client = await connect(at)
  const request = start(id, { command: ['top'], terminal: { columns: 1, rows: 2, term: 'vt100' } })
  const first = client.open(request)
  first.done.catch(() => {})
  await new Promise((resolve) => (first.onEvent = resolve))
  first.cancel()
  const { exec } = request
  const second = client.open({
    op: 'exec.attach',
    sandbox: id,
    exec,
    stdoutFrom: 0,
    stderrFrom: 0,
    terminal: true,
  })
  const shown = second.read(STDOUT)[Symbol.asyncIterator]()
  expect(Buffer.from((await shown.next()).value ?? '').toString()).toBe('top vt100 1x2\n')
  await second.send(STDIN, Buffer.from('exit 0'))
  expect(await second.done).toMatchObject({ exitCode: 0 })
})

test('what can not be is refused with its code', async () => {
  await using at = await startTestDaemon({ script: shell })
  const { id } = await at.sandbox()
  using client = await connect(at)
  const failure = (request: object) =>
    client.open(request as never).done.then(
      () => ({ code: 'none' }),
      (error) => error,
    )
  expect(await failure(start(id))).toMatchObject({
    code: 'exec_failed',
    message: 'the sandbox has no shell: none of /bin/bash, /bin/sh',
    hint: expect.stringContaining('Say which program'),
  })
  expect(await failure(start(id, { terminal: undefined }))).toMatchObject({
    code: 'invalid_request',
  })
  for (const terminal of [{ columns: 0, rows: 1 }, { columns: 80 }, { columns: 5000, rows: 1 }]) {
    expect(await failure(start(id, { terminal })), JSON.stringify(terminal)).toMatchObject({
      code: 'invalid_request',
    })
  }
  const plain = start(id, { command: ['x'], stdin: false, terminal: undefined })
  void failure(plain)
  const execs = `/v1/sandboxes/${id}/execs`
  await until(async () => ((await at.ask('GET', execs)).json as { items: [] }).items.length > 0)
  const size = { columns: 80, rows: 24 }
  const without = await at.ask('POST', `${execs}/${plain.exec}/resize`, { json: size })
  expect(without).toMatchObject({ status: 400, code: 'invalid_request' })
  const none = await at.ask('POST', `${execs}/none/resize`, { json: size })
  expect(none.code).toBe('exec_unknown')
  const bad = await at.ask('POST', `${execs}/${plain.exec}/resize`, { json: { columns: 'x' } })
  expect(bad.code).toBe('invalid_request')
})

test('a daemon that drains waits for no terminal', async () => {
  const { at, id } = await given()
  await using _ = at
  using client = await connect(at)
  const stream = client.open(start(id))
  stream.done.catch(() => {})
  await new Promise((resolve) => (stream.onEvent = resolve))
  await at.daemon.close({ drainMs: 60_000, sandboxes: 'keep' })
})
