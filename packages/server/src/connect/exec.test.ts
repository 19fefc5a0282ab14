import { CONNECT_REVISION, newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { connect, textOf } from '../testing/client.ts'
import { startTestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

const STDIN = 0
const STDOUT = 1
const STDERR = 2

const start = (sandbox: string, command: string | string[], more = {}) => ({
  op: 'exec.start' as const,
  sandbox,
  exec: newId('exec'),
  command,
  stdin: false,
  mode: 'stream' as const,
  ...more,
})

test('a command streams: started, output of both channels, result', async () => {
  await using at = await startTestDaemon({
    script: ({ stdin }) => ({ stdout: `out ${Buffer.from(stdin)}`, stderr: 'err', exitCode: 3 }),
  })
  const { id } = await at.sandbox()
  using client = await connect(at)
  expect(client.hello).toMatchObject({ protocol: CONNECT_REVISION, server: expect.any(String) })
  const stream = client.open(start(id, 'x', { stdin: true }))
  const events: unknown[] = []
  stream.onEvent = (event) => events.push(event)
  const both = Promise.all([textOf(stream, STDOUT), textOf(stream, STDERR)])
  await stream.send(STDIN, Buffer.from('and in'))
  stream.end(STDIN)
  expect(await both).toEqual(['out and in', 'err'])
  expect(await stream.done).toMatchObject({ exitCode: 3, signal: null, stdout: { totalBytes: 10 } })
  expect(events).toEqual([{ kind: 'started', pid: expect.any(Number) }, { kind: 'stdin' }])
})

test('a reader that stalls holds up its own command and nothing else', async () => {
  const flood = Buffer.alloc(4 * 2 ** 20, 'x')
  await using at = await startTestDaemon({
    script: ({ argv }) => (argv[0] === 'flood' ? { stdout: flood } : { stdout: 'quick' }),
  })
  const { id } = await at.sandbox()
  using client = await connect(at)
  const stalled = client.open(start(id, ['flood']))
  const reader = stalled.read(STDOUT)[Symbol.asyncIterator]()
  const first = await reader.next()
  for (let i = 0; i < 20; i++) {
    const quick = client.open(start(id, ['quick']))
    expect(await textOf(quick, STDOUT)).toBe('quick')
    expect(await quick.done).toMatchObject({ exitCode: 0 })
  }
  // No more than its credit is under way for the one that is not read.
  expect(stalled.receivedBytes(STDOUT)).toBeLessThanOrEqual(2 * 262_144 + 65_536)
  let received = first.value?.length ?? 0
  for (let next = await reader.next(); !next.done; next = await reader.next()) {
    received += next.value.length
  }
  expect(received).toBe(flood.length)
  expect(await stalled.done).toMatchObject({ stdout: { totalBytes: flood.length } })
})

test('a client that is lost finds its command again, with what it missed', async () => {
  const end = Promise.withResolvers<void>()
  await using at = await startTestDaemon({
    script: async () => {
      await end.promise
      return { stdout: '0123456789' }
    },
  })
  const { id } = await at.sandbox()
  const request = start(id, 'x')
  {
    using client = await connect(at)
    const lost = client.open(request)
    await new Promise((resolve) => (lost.onEvent = resolve))
    lost.done.catch(() => {})
  }
  using client = await connect(at)
  const { exec, sandbox } = request
  const attach = { op: 'exec.attach' as const, sandbox, exec, stdoutFrom: 4, stderrFrom: 0 }
  const found = client.open(attach)
  const offsets: unknown[] = []
  found.onEvent = (event) => event.kind === 'offset' && offsets.push(event)
  end.resolve()
  expect(await textOf(found, STDOUT)).toBe('456789')
  expect(await found.done).toMatchObject({ exec, exitCode: 0 })
  expect(offsets).toEqual([{ kind: 'offset', channel: STDOUT, offset: 4, droppedBytes: 0 }])

  // The same start again runs nothing, it finds the command that ran.
  const again = client.open(request)
  expect(await textOf(again, STDOUT)).toBe('0123456789')
  expect(await again.done).toMatchObject({ exec, exitCode: 0 })
})

test('cancelling detaches; the command goes on until it is killed', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true }) })
  const { id } = await at.sandbox()
  using client = await connect(at)
  const request = start(id, 'x')
  const stream = client.open(request)
  await new Promise((resolve) => (stream.onEvent = resolve))
  stream.cancel()
  await expect(stream.done).rejects.toMatchObject({ code: 'cancelled' })
  const listed = await at.ask('GET', `/v1/sandboxes/${id}/execs`)
  expect(listed.json).toMatchObject({ items: [{ exec: request.exec, running: true }] })
  await at.ask('POST', `/v1/sandboxes/${id}/execs/${request.exec}/kill`)
})

test('failures have the codes of the catalogue', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true }) })
  const { id } = await at.sandbox()
  using client = await connect(at)
  const codeOf = (request: object) =>
    client.open(request as never).done.then(
      () => 'none',
      (error) => error.code,
    )
  expect(await codeOf(start(newId('sandbox'), 'x'))).toBe('sandbox_unknown')
  expect(await codeOf({ op: 'nonsense' })).toBe('invalid_request')
  expect(await codeOf(start(id, 'x', { exec: 'a/b' }))).toBe('exec_unknown')
  const attach = { op: 'exec.attach', sandbox: id, exec: 'none', stdoutFrom: 0, stderrFrom: 0 }
  expect(await codeOf(attach)).toBe('exec_unknown')
  expect(await codeOf({ op: 'file.read', sandbox: id, path: '/none' })).toBe('file_not_found')
  const running = codeOf(start(id, 'x'))
  await until(async () => {
    const listed = await at.ask('GET', `/v1/sandboxes/${id}/execs`)
    return (listed.json as { items: unknown[] }).items.length > 0
  })
  at.driver.kill(id, 'lost')
  expect(await running).toBe('sandbox_lost')
})

test('bytes that are no frames end the connection alone', async () => {
  await using at = await startTestDaemon()
  using client = await connect(at)
  const closed = new Promise((resolve) => client.socket.on('close', resolve))
  client.socket.send(Buffer.from('garbage'))
  expect(await closed).toBe(1002)
  expect((await at.ask('GET', '/healthz')).status).toBe(200)
})
