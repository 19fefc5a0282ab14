import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

const PORT = 5_432
let daemon: FakeDaemon

/** `serve` says back what it is told; `slow` begins to listen when its file is written. */
beforeAll(async () => {
  daemon = await startFakeDaemon({
    script: async ({ argv, listen, files, signal }) => {
      if (argv[0] === 'slow') await until(() => signal.aborted || files.bytes('/go') !== undefined)
      if (argv[0] === 'serve' || argv[0] === 'slow') {
        listen(PORT, (connection) => void connection.on('error', () => {}).pipe(connection))
        return { hangs: true }
      }
      return {}
    },
  })
})
afterAll(async () => daemon[Symbol.asyncDispose]())

async function newSandbox(command: 'serve' | 'slow') {
  const sandbox = await daemon.client().sandboxes.create({ from: await daemon.image() })
  sandbox.exec([command]).catch(() => {})
  if (command === 'serve') await sandbox.ports.wait(PORT)
  return sandbox
}

test('a wait ends when something listens, and what listens is listed', async () => {
  await using sandbox = await newSandbox('slow')
  await expect(sandbox.ports.wait(PORT, { timeout: 50 })).rejects.toMatchObject({ code: 'timeout' })
  const waits = sandbox.ports.wait(PORT, { timeout: '30s' })
  expect(await sandbox.ports.list()).toEqual([])
  await sandbox.files.write('/go', '')
  await waits
  expect(await sandbox.ports.list()).toEqual([
    { port: PORT, addresses: ['0.0.0.0'], reachable: true },
  ])
})

test('a connection carries bytes of any protocol, both ways to the end', async () => {
  await using sandbox = await newSandbox('serve')
  const connection = await sandbox.ports.connect(PORT)
  const sent = Buffer.alloc(3_000_000, 'z')
  connection.end(sent)
  expect(Buffer.concat(await Array.fromAsync(connection)).equals(sent)).toBe(true)
})

test('what can’t be reached says why', async () => {
  const sandbox = await newSandbox('serve')
  const codeOf = (port: number) =>
    sandbox.ports.connect(port).then(
      () => 'none',
      (error) => error.code,
    )
  expect(await codeOf(1)).toBe('port_refused')
  expect(await codeOf(61_080)).toBe('invalid_request')
  expect(await codeOf(65_536)).toBe('invalid_request')
  const connection = await sandbox.ports.connect(PORT)
  const failed = once(connection, 'error')
  await sandbox.stop()
  expect((await failed)[0]).toMatchObject({ code: 'sandbox_gone' })
  expect(await codeOf(PORT)).toBe('sandbox_gone')
})

test('a URL is good at the address of the client, also after a restart of the daemon', async () => {
  await using sandbox = await newSandbox('serve')
  const url = await sandbox.ports.url(PORT, { expires: '10m', path: '/a' })
  expect(url.startsWith(`${daemon.url}/p/`)).toBe(true)
  expect(await sandbox.ports.url(PORT, { named: true })).toContain('.localhost:')
  await daemon.restart()
  // The echo is no HTTP: that it is asked is what counts.
  expect((await fetch(url)).headers.get('sandlot-error')).toBe('port_failed')
})

test('port-forward listens here, for several at once, until it is interrupted', async () => {
  await using sandbox = await newSandbox('serve')
  const child = spawn(
    process.execPath,
    [...['packages/cli/src/main.ts', 'port-forward', sandbox.id, `0:${PORT}`, '0:1']],
    { env: { ...process.env, SANDLOT_URL: daemon.url, SANDLOT_API_KEY: daemon.apiKey } },
  )
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const notes = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
  const portOf = async () => Number(/:(\d+) -> /.exec((await lines.next()).value ?? '')?.[1])
  const [served, refused] = [await portOf(), await portOf()]
  const talk = async (text: string) => {
    const socket = connect(served)
    socket.end(text)
    return Buffer.concat(await Array.fromAsync(socket)).toString()
  }
  expect(await Promise.all(['one', 'two'].map(talk))).toEqual(['one', 'two'])
  const socket = connect(refused).on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
  expect((await notes.next()).value).toContain('nothing listens on port 1')
  child.kill('SIGINT')
  expect((await ended)[0]).toBe(0)
})
