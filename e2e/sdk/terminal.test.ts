import { type Pty, Sandlot } from 'sandlot'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

let daemon: FakeDaemon

/** A shell that answers what it is told in brackets, and ends at `exit N`. */
beforeAll(async () => {
  daemon = await startFakeDaemon({
    script: ({ argv, env, cwd, user, terminal }) => {
      const place = JSON.stringify({ argv, env, cwd, user, terminal })
      if (!terminal) return { hangs: true }
      return {
        stdout: `${place}\n`,
        types: (typed, { columns, rows }) => {
          if (typed.startsWith('exit')) return { prints: 'bye\n', exitCode: Number(typed.slice(5)) }
          return { prints: typed === '' ? `${columns}x${rows}\n` : `[${typed}]` }
        },
      }
    },
  })
})
afterAll(async () => daemon[Symbol.asyncDispose]())

const size = { columns: 80, rows: 24 }

async function newSandbox() {
  const sandbox = await daemon.client().sandboxes.create({ from: await daemon.image() })
  await sandbox.files.write('/bin/sh', '#!', { mode: 0o755 })
  return sandbox
}

/** Reads until the text is there; gives all that was read. */
async function shows(pty: Pty, wanted: string): Promise<string> {
  const read = pty[Symbol.asyncIterator]()
  let text = ''
  while (!text.includes(wanted)) {
    const next = await read.next()
    if (next.done) throw new Error(`the terminal ended with ${JSON.stringify(text)}`)
    text += next.value.text
  }
  return text
}

test('a terminal has its command, size and surroundings, is typed at, and ends', async () => {
  await using sandbox = await newSandbox()
  const pty = await sandbox.pty({
    command: ['vi', 'x'],
    size: { columns: 132, rows: 43 },
    term: 'vt100',
    env: { A: 'b' },
    cwd: '/etc',
    user: '1:1',
  })
  expect(JSON.parse(await shows(pty, '\n'))).toMatchObject({
    argv: ['vi', 'x'],
    env: { A: 'b', TERM: 'vt100' },
    cwd: '/etc',
    user: '1:1',
    terminal: { columns: 132, rows: 43 },
  })
  await pty.write('typed')
  await shows(pty, '[typed]')
  await pty.resize({ columns: 40, rows: 10 })
  await shows(pty, '40x10\n')
  await pty.write('exit 3')
  await shows(pty, 'bye\n')
  expect(await pty.result).toMatchObject({ exec: pty.id, exitCode: 3 })
  await expect(pty.write('more')).rejects.toMatchObject({ code: 'cancelled' })
  await pty.resize(size)
  await pty.kill()
  expect(await sandbox.ptys.list()).toMatchObject([{ exec: pty.id, running: false }])
})

test('what is typed comes after the sizes that were set before it, of which the last holds', async () => {
  await using sandbox = await newSandbox()
  const pty = await sandbox.pty({ size })
  await shows(pty, '\n')
  for (let columns = 10; columns < 200; columns += 10) {
    const sizes = [1, 2, 3, 4].map((rows) => pty.resize({ columns, rows }))
    await pty.write('typed')
    expect(await shows(pty, '[typed]')).toContain(`${columns}x4\n[typed]`)
    await Promise.all(sizes)
  }
  await expect(pty.resize({ columns: 0, rows: 1 })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  await pty.write('exit 0')
  expect(await pty.result).toMatchObject({ exitCode: 0 })
})

test('a size of which nobody answers holds the keys up for a while alone', async () => {
  await using sandbox = await newSandbox()
  const pty = await sandbox.pty({ size })
  await shows(pty, '\n')
  const { fetch } = globalThis
  const silent = vi.spyOn(globalThis, 'fetch').mockImplementation((url, options) => {
    const never = new Promise<never>(() => {})
    return String(url).endsWith('/resize') ? never : fetch(url, options)
  })
  void pty.resize({ columns: 40, rows: 10 })
  await pty.write('typed')
  silent.mockRestore()
  expect(await shows(pty, '[typed]')).toBe('[typed]')
  await pty.resize({ columns: 41, rows: 11 })
  await shows(pty, '41x11\n')
})

test('it is found again by its id, from where it was read; who attaches takes it over', async () => {
  await using sandbox = await newSandbox()
  const first = await sandbox.pty({ size })
  const start = await shows(first, '\n')
  expect(first.offset).toBe(Buffer.byteLength(start))
  const lost = expect(first.result).rejects.toMatchObject({ code: 'cancelled' })
  const second = await sandbox.ptys.attach(first.id, { from: first.offset, size })
  await lost
  await shows(second, '80x24\n')
  await second.write('x')
  expect(await shows(second, '[x]')).toBe('[x]')
  second.detach()
  await expect(second.result).rejects.toMatchObject({ code: 'cancelled' })
  const third = await sandbox.ptys.attach(first.id)
  expect(await shows(third, '[x]')).toBe(`${start}80x24\n[x]`)
  await sandbox.ptys.kill(first.id)
  expect(await third.result).toMatchObject({ signal: 9, killed: true })
})

test('it goes on over a restart of the daemon, and what is typed meanwhile is typed then', async () => {
  const { id } = await newSandbox()
  const { promise: away, resolve } = Promise.withResolvers<void>()
  const { url, apiKey } = daemon
  await using client = new Sandlot({
    url,
    apiKey,
    onNotice: ({ kind }) => kind === 'daemon_away' && resolve(),
  })
  await using sandbox = await client.sandboxes.get(id)
  const pty = await sandbox.pty({ size })
  await shows(pty, '\n')
  let typed: Promise<unknown> | undefined
  await daemon.restart(async () => {
    // Some of it may be on its way to a daemon that is gone; what comes later waits.
    const first = pty.write('first').catch(() => undefined)
    await away
    typed = Promise.all([first, pty.write('second')])
  })
  await typed
  await shows(pty, 'second]')
  await pty.write('after')
  await shows(pty, '[after]')
  await pty.write('exit 0')
  expect(await pty.result).toMatchObject({ exitCode: 0 })
})

test('disposing kills what was started, and lets go of what was attached to', async () => {
  await using sandbox = await newSandbox()
  const states = async () => (await sandbox.ptys.list()).map(({ running }) => running)
  let id: string
  {
    await using pty = await sandbox.pty({ size })
    id = pty.id
    {
      await using _ = await sandbox.ptys.attach(id)
    }
    expect(await states()).toEqual([true])
    await sandbox.ptys.kill(id)
  }
  {
    await using _ = await sandbox.pty({ size })
    expect(await states()).toEqual([false, true])
  }
  expect(await states()).toEqual([false, false])
  const enough = new AbortController()
  const pty = await sandbox.pty({ size, signal: enough.signal })
  enough.abort(new Error('enough'))
  await expect(pty.result).rejects.toThrow('enough')
})

test('what can not be is refused in a sentence', async () => {
  await using sandbox = await daemon.client().sandboxes.create({ from: await daemon.image() })
  await expect(sandbox.pty({ size })).rejects.toMatchObject({
    code: 'exec_failed',
    message: 'the sandbox has no shell: none of /bin/bash, /bin/sh',
  })
  await expect(sandbox.pty({ size: { columns: 0, rows: 1 } })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  await expect(sandbox.pty({} as never)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(sandbox.pty({ size, rows: 3 } as never)).rejects.toThrow('there is no option "rows"')
  await expect(sandbox.pty({ size, term: 'a b' })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  await expect(sandbox.ptys.attach('none')).rejects.toMatchObject({ code: 'exec_unknown' })
  const aborted = AbortSignal.abort(new Error('before'))
  await expect(sandbox.pty({ size, signal: aborted })).rejects.toThrow('before')
  const plain = sandbox.exec(['x'], { stream: true })
  await expect.poll(async () => (await sandbox.execs()).length).toBe(1)
  expect(await sandbox.ptys.list()).toEqual([])
  await plain.kill()
})
