import { once } from 'node:events'
import { access, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownPort } from '@sandlot/testkit'
import { Sandlot } from 'sandlot'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startFakeDaemon, until } from './fake-daemon.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-local-'))
  vi.stubEnv('SANDLOT_URL', '')
  vi.stubEnv('SANDLOT_API_KEY', '')
  vi.stubEnv('SANDLOT_RUN_DIRECTORY', join(folder, 'run'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true })
})

/** A `sandlot` that does as the script says; `started` counts its starts, `drained` its orderly ends. */
async function binary(script: string): Promise<void> {
  const path = join(folder, 'sandlot')
  await writeFile(path, `#!/bin/sh\necho "$@" >> ${folder}/started\n${script}\n`)
  await chmod(path, 0o755)
  vi.stubEnv('SANDLOT_BIN', path)
}

describe('the daemon of this machine', () => {
  test('is found with its key, and joined', async () => {
    await using daemon = await startFakeDaemon()
    vi.stubEnv('SANDLOT_RUN_DIRECTORY', daemon.runDirectory)
    await using found = new Sandlot()
    expect(await found.endpoint()).toEqual({ url: daemon.url, apiKey: daemon.apiKey })
    await using joined = await Sandlot.local()
    expect(await joined.endpoint()).toEqual({ url: daemon.url, apiKey: daemon.apiKey })
    await joined.close()
    expect(await Array.fromAsync(found.sandboxes.list())).toEqual([])
  })

  test('is found again by who joined it, where it answers elsewhere with another key', async () => {
    await using daemon = await startFakeDaemon()
    vi.stubEnv('SANDLOT_RUN_DIRECTORY', daemon.runDirectory)
    await using joined = await Sandlot.local()
    const before = await joined.endpoint()
    const from = await joined.images.get((await daemon.image()).id)
    const port = await ownPort()
    await daemon.restart(async () => await rm(join(daemon.directory, 'data/key')), { port })
    expect(daemon.url).not.toBe(before.url)
    expect(daemon.apiKey).not.toBe(before.apiKey)
    expect(await Array.fromAsync(joined.sandboxes.list())).toEqual([])
    expect(await joined.endpoint()).toEqual({ url: daemon.url, apiKey: daemon.apiKey })
    // Over its streams, too.
    await using sandbox = await joined.sandboxes.create({ from })
    expect((await sandbox.exec(['true'])).exitCode).toBe(0)
  })

  test('is joined where it answers late, and none is started beside it', async () => {
    await binary('exit 1')
    const late = createServer((_, response) => void setTimeout(() => response.end(), 2_200))
    await once(late.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(late.address() as AddressInfo).port}`
    await mkdir(join(folder, 'run'))
    await writeFile(join(folder, 'key'), 'sk_late')
    const said = JSON.stringify({ url, dataDirectory: folder })
    await writeFile(join(folder, 'run/daemon.json'), said)
    await using joined = await Sandlot.local()
    expect(await joined.endpoint()).toEqual({ url, apiKey: 'sk_late' })
    await expect(access(join(folder, 'started'))).rejects.toThrow()
    late.closeAllConnections()
    late.close()
  })

  test('shows its key to nobody else', async () => {
    await using daemon = await startFakeDaemon()
    vi.stubEnv('SANDLOT_RUN_DIRECTORY', daemon.runDirectory)
    await using other = new Sandlot({ url: 'http://127.0.0.1:1' })
    await expect(other.endpoint()).rejects.toMatchObject({ code: 'unauthorized' })
    await using keyless = new Sandlot({ url: daemon.url.replace('127.0.0.1', 'localhost') })
    expect(await keyless.health()).toMatchObject({ ok: true, state: 'serving' })
    await expect(keyless.sandboxes.list().next()).rejects.toMatchObject({ code: 'unauthorized' })
    await using own = new Sandlot({ url: `${daemon.url}/` })
    expect(await own.endpoint()).toEqual({ url: daemon.url, apiKey: daemon.apiKey })
  })

  test('is missed with the command that starts one', async () => {
    await using client = new Sandlot()
    await expect(client.endpoint()).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('sandlot serve'),
    })
    await using wrong = new Sandlot({ url: 'localhost:8760', apiKey: 'k' })
    await expect(wrong.endpoint()).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('a daemon that is started for this process', () => {
  const announce = `echo '{"url":"http://127.0.0.1:1","apiKey":"k"}'`

  test('is shared, drained by the last client, and started anew after that', async () => {
    await binary(`echo building >&2; ${announce}; cat; echo yes >> ${folder}/drained`)
    const lines: string[] = []
    const onLog = (line: string) => lines.push(line)
    const [one, two] = await Promise.all([Sandlot.local({ onLog }), Sandlot.local()])
    expect(await one?.endpoint()).toEqual({ url: 'http://127.0.0.1:1', apiKey: 'k' })
    await until(() => lines.length > 0)
    expect(lines).toEqual(['building'])
    await one?.close()
    await one?.close()
    await expect(access(join(folder, 'drained'))).rejects.toThrow()
    await two?.close()
    expect(await readFile(join(folder, 'drained'), 'utf8')).toBe('yes\n')
    await (await Sandlot.local()).close()
    expect(await readFile(join(folder, 'started'), 'utf8')).toBe(
      'serve --port 0 --attached\n'.repeat(2),
    )
  })

  test.each([
    ['ends at once', 'echo no runsc >&2; exit 3', /ended with exit code 3\nno runsc/],
    ['prints something else', 'echo hello; cat', /printed "hello"/],
  ])('that %s is told with what it said', async (_, script, message) => {
    await binary(script)
    await expect(Sandlot.local()).rejects.toMatchObject({ code: 'unreachable', message })
  })

  test('that is not there is told, too', async () => {
    vi.stubEnv('SANDLOT_BIN', join(folder, 'none'))
    await expect(Sandlot.local()).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('sandlot serve'),
    })
  })

  test('is given up with the signal', async () => {
    await binary(`cat; echo yes >> ${folder}/drained`)
    const controller = new AbortController()
    const starting = Sandlot.local({ signal: controller.signal })
    starting.catch(() => undefined)
    await until(() =>
      access(join(folder, 'started')).then(
        () => true,
        () => false,
      ),
    )
    controller.abort(new Error('not today'))
    await expect(starting).rejects.toThrow('not today')
  })
})
