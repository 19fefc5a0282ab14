import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'

test('a command’s end is an answer, whatever it is', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  expect((await at.exec(id, ['echo', 'hi'])).json).toMatchObject({
    exitCode: 0,
    signal: null,
    stdoutText: 'hi\n',
    timedOut: false,
    stdout: { totalBytes: 3, droppedBytes: 0 },
  })
  expect((await at.exec(id, ['false'])).json).toMatchObject({ exitCode: 1 })
  expect((await at.exec(id, ['sleep', '100'], { timeout: 20 })).json).toMatchObject({
    exitCode: null,
    signal: 9,
    timedOut: true,
  })
  const stdinBase64 = Buffer.from('from stdin').toString('base64')
  expect((await at.exec(id, ['cat'], { stdinBase64 })).json).toMatchObject({
    stdoutText: 'from stdin',
  })
})

test('a command sees the sandbox’s environment, directory and user, and its own on top', async () => {
  await using at = await startTestDaemon({
    script: ({ env, cwd, user, argv }) => ({ stdout: JSON.stringify({ env, cwd, user, argv }) }),
  })
  const { id } = await at.sandbox({ env: { A: '1', B: '1' }, workdir: '/work', user: 'dev' })
  const seen = async (command: unknown, more = {}) => {
    const reply = await at.exec(id, command, more)
    return JSON.parse((reply.json as { stdoutText: string }).stdoutText)
  }
  const first = await seen('make test')
  expect(first).toMatchObject({ cwd: '/work', user: 'dev', argv: ['/bin/sh', '-c', 'make test'] })
  expect(first.env).toMatchObject({ A: '1', B: '1', PATH: expect.any(String) })
  const own = await seen(['x'], { env: { B: '2' }, cwd: 'sub', user: '0' })
  expect(own).toMatchObject({ cwd: '/work/sub', user: '0' })
  expect(own.env).toMatchObject({ A: '1', B: '2' })
})

test('output that is no text stands exactly beside its text', async () => {
  const bytes = Buffer.from([0xff, 0x00, 0x41])
  await using at = await startTestDaemon({ script: () => ({ stdout: bytes }) })
  const { id } = await at.sandbox()
  expect((await at.exec(id, 'x')).json).toMatchObject({
    stdoutText: bytes.toString(),
    stdoutBase64: bytes.toString('base64'),
    stderrText: '',
  })
})

test('commands are listed, killed, and their output is read again', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true, stdout: 'so far' }) })
  const { id } = await at.sandbox()
  const path = `/v1/sandboxes/${id}/exec`
  const running = at.ask('POST', path, { json: { command: 'x' }, idempotencyKey: 'k' })
  let exec = ''
  while (exec === '') {
    const listed = await at.ask('GET', `${path}s`)
    exec = (listed.json as { items: { exec: string }[] }).items[0]?.exec ?? ''
  }
  const output = await at.ask('GET', `${path}s/${exec}/output?channel=stdout`)
  expect(output.text).toBe('so far')
  expect((await at.ask('GET', `${path}s/${exec}/output?channel=stderr`)).text).toBe('')
  const killed = await at.ask('POST', `${path}s/${exec}/kill`, { json: { signal: 15 } })
  expect(killed.json).toEqual({ processes: 1 })
  expect((await running).json).toMatchObject({ exec, signal: 15, killed: true })
  expect((await at.ask('GET', `${path}s/${exec}/output`)).text).toBe('so far')
  expect((await at.ask('POST', `${path}s/none/kill`)).code).toBe('exec_unknown')
})

test('a client without a key that leaves takes its command with it', async () => {
  const started = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  await using at = await startTestDaemon({
    script: ({ signal }) => {
      signal.addEventListener('abort', () => ended.resolve())
      started.resolve()
      return { hangs: true }
    },
  })
  const { id } = await at.sandbox()
  const leave = new AbortController()
  const asked = at.ask('POST', `/v1/sandboxes/${id}/exec`, {
    json: { command: 'x' },
    signal: leave.signal,
  })
  await started.promise
  leave.abort()
  await expect(asked).rejects.toThrow()
  await ended.promise
})
