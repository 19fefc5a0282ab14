/** `sandlot serve` as a process, with the driver that only plays sandboxes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterEach, expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

interface Serving {
  readonly child: ChildProcess
  /** What it says when it serves; undefined when it ended before. */
  readonly said: Promise<{ url: string; apiKey: string } | undefined>
  readonly ended: Promise<{ code: number | null; stderr: string }>
}

function serve(
  directory: string,
  argv: readonly string[],
  env: Record<string, string> = {},
): Serving {
  const child = spawn(
    process.execPath,
    [
      ...['--disable-warning=ExperimentalWarning', MAIN, 'serve', '--attached', '--port', '0'],
      ...['--data-directory', join(directory, 'data'), '--run-directory', join(directory, 'run')],
      ...argv,
    ],
    { env: { ...process.env, SANDLOT_DRIVER: 'fake', NO_COLOR: '1', ...env } },
  )
  started.push(child)
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, stderr }))
  const line = once(createInterface({ input: child.stdout }), 'line')
  const said = Promise.race([line, ended]).then((first) =>
    Array.isArray(first) ? JSON.parse(first[0]) : undefined,
  )
  return { child, said, ended }
}

async function fail(directory: string, argv: readonly string[], env: Record<string, string> = {}) {
  const { ended, said } = serve(directory, argv, env)
  expect(await said).toBeUndefined()
  return await ended
}

test('it says where it serves, and stops when its owner is gone', async () => {
  await using directory = await temporaryDirectory()
  const { child, said, ended } = serve(directory.path, [])
  const { url, apiKey } = (await said) ?? expect.unreachable()
  expect((await fetch(`${url}/healthz`)).ok).toBe(true)
  const headers = { authorization: `Bearer ${apiKey}` }
  expect((await fetch(`${url}/v1/sandboxes`, { headers })).ok).toBe(true)
  child.stdin?.end()
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toContain('its owner is gone: draining')
})

test.each(['SIGINT', 'SIGTERM'] as const)('%s drains it', async (signal) => {
  await using directory = await temporaryDirectory()
  const { child, said, ended } = serve(directory.path, [])
  await said
  child.kill(signal)
  expect((await ended).code).toBe(0)
})

test('a port that another program has is told, with what to do', async () => {
  await using directory = await temporaryDirectory()
  const other = createServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const { code, stderr } = await fail(directory.path, ['--port', String(port)])
  other.close()
  expect(code).toBe(2)
  expect(stderr).toContain(`error: another program listens on 127.0.0.1:${port}`)
  expect(stderr).toMatch(/hint: .*--port 0/)
})

test('a data directory that another daemon has is told, with which one', async () => {
  await using directory = await temporaryDirectory()
  const first = serve(directory.path, [])
  await first.said
  const { code, stderr } = await fail(directory.path, [])
  expect(code).toBe(2)
  expect(stderr).toContain(`process ${first.child.pid} has the data directory`)
  expect(stderr).toMatch(/hint: +Stop process/)
  // What still serves may write while its directory is removed.
  first.child.stdin?.end()
  await first.ended
})

test('a data directory that can’t be made is told', async () => {
  await using directory = await temporaryDirectory()
  const { code, stderr } = await fail(directory.path, ['--data-directory', '/dev/null/data'])
  expect(code).toBe(2)
  expect(stderr).toMatch(/error: cannot make \/dev\/null\/data.*\nhint: .*--data-directory/s)
})

test('a setting that can’t be is told by its name', async () => {
  await using directory = await temporaryDirectory()
  const { code, stderr } = await fail(directory.path, [], { SANDLOT_LOG_LEVEL: 'loud' })
  expect(code).toBe(2)
  expect(stderr).toContain('SANDLOT_LOG_LEVEL: "loud" is none of')
})

test('a runsc that is none is told before anything is started', async () => {
  await using directory = await temporaryDirectory()
  const env = { SANDLOT_DRIVER: 'gvisor', SANDLOT_RUNSC: '/bin/true' }
  const programs = { SANDLOT_AGENT: '/bin/true', SANDLOT_HELPER: '/bin/true' }
  const { code, stderr } = await fail(directory.path, [], { ...env, ...programs })
  expect(code).toBe(1)
  // A machine without root says that first.
  expect(stderr).toMatch(
    /error: (SANDLOT_RUNSC=\/bin\/true is no runsc that runs|the daemon needs root)/,
  )
})
