import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CommandEnd, runCommand, startCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const execute = promisify(execFile)
/** No server that asks for any free port is given this one. */
const NOBODYS_URL = 'http://127.0.0.1:61999'
const top = fileURLToPath(new URL('..', import.meta.url))

await story('the command line', { pool: 1 }, (given) => {
  const sandlot = (argv: readonly string[], input?: string): Promise<CommandEnd> =>
    runCommand(argv, {
      environment: given.daemon.environment,
      ...(input === undefined ? {} : { input }),
    })

  /** Every failure says what, and what to do. */
  const expectFailure = (end: CommandEnd, code: number, text: RegExp): void => {
    expect(end).toMatchObject({ code, stdout: '' })
    expect(end.stderr).toMatch(text)
    expect(end.stderr).toMatch(/hint: +\S/)
    expect(end.stderr).not.toMatch(/^\s+at /m)
  }

  describe('with a sandbox', () => {
    let id = ''
    beforeAll(async () => {
      const created = await sandlot([
        ...['sandbox', 'create', '--from', given.image, '--memory', '256MiB', '--disk', '64MiB'],
        ...['--env', 'WHO=me', '--tag', 'suite=cli', '--keep-warm', '5m'],
      ])
      expect(created).toMatchObject({ code: 0, stderr: '' })
      id = created.stdout.trim()
      expect(id).toMatch(/^sb_[a-z0-9]{20}$/)
    })

    test('runs commands with its streams, and ends as they do', async () => {
      const exec = (...argv: string[]) => sandlot(['sandbox', 'exec', id, ...argv])
      expect(await exec('sh', '-c', 'echo out $WHO; echo err >&2; exit 7')).toEqual({
        code: 7,
        stdout: 'out me\n',
        stderr: 'err\n',
      })
      expect(await exec('sh', '-c', 'kill -9 $$')).toMatchObject({ code: 137 })
      expect(await sandlot(['sandbox', 'exec', id, 'cat'], 'fed\n')).toMatchObject({
        code: 0,
        stdout: 'fed\n',
      })
      const limited = await sandlot(['sandbox', 'exec', '--timeout', '500ms', id, 'sleep', '100'])
      expect(limited.code).toBe(137)
      expect(limited.stderr).toMatch(/deadline/)
      const set = ['--cwd', '/tmp', '--user', '65534:65534', '--env', 'A=b c']
      const seen = await sandlot(['sandbox', 'exec', ...set, id, 'sh', '-c', 'pwd; id -u; echo $A'])
      expect(seen.stdout).toBe('/tmp\n65534\nb c\n')
      expectFailure(await exec('no-such-program'), 1, /did not start.*\(exec_failed\)/s)
    })

    test('is listed, shown and stopped', async () => {
      const listed = await sandlot(['ps'])
      expect(listed.stdout).toMatch(new RegExp(`${id}\\s+running`))
      const json = JSON.parse((await sandlot(['ps', '--json'])).stdout)
      expect(json).toMatchObject([{ id, state: 'running', tags: { suite: 'cli' } }])
      const logs = await sandlot(['sandbox', 'logs', id])
      const exec = /(ex_[a-z0-9]{20})\s+ended/.exec(logs.stdout)?.[1] ?? ''
      expect(exec).not.toBe('')
      expect(logs.stdout).toContain("sh -c 'pwd; id -u; echo $A'")
      expect(await sandlot(['sandbox', 'logs', id, '--exec', exec])).toMatchObject({ code: 0 })
      expectFailure(
        await sandlot(['sandbox', 'logs', id, '--exec', 'ex_aaaaaaaaaaaaaaaaaaaa']),
        2,
        /exec_unknown/,
      )
      expect((await sandlot(['sandbox', 'stop', id])).stdout).toBe(`${id} stopped\n`)
      expect(await sandlot(['ps'])).toMatchObject({ code: 0, stdout: '', stderr: /no sandboxes/ })
      expect((await sandlot(['ps', '--all'])).stdout).toMatch(new RegExp(`${id}\\s+stopped`))
      const after = await sandlot(['sandbox', 'logs', id])
      expect(after.stdout).toMatch(/ended: stopped/)
      expect(after.stderr).toMatch(/ended with it/)
      expectFailure(await sandlot(['sandbox', 'logs', id, '--exec', exec]), 1, /ended with|with it/)
      expectFailure(await sandlot(['sandbox', 'exec', id, 'true']), 1, /sandbox_gone/)
    })
  })

  test('shows runs, their results, and ends them', async () => {
    const run = given.client.rollouts.map(
      [{ id: 'a' }, { id: 'b' }],
      async ({ sandbox, task }) => {
        if (task.id === 'b') await sandbox.exec('sleep 1000')
        return { reward: 0.5, data: { said: task.id } }
      },
      { from: given.image, name: 'cli-run', concurrency: 2 },
    )
    await until('one is done, and one runs', async () => {
      const { done, running } = (await run.view()).counts
      return done === 1 && running === 1
    })
    const listed = await sandlot(['runs', 'list'])
    expect(listed.stdout).toMatch(/cli-run\s+running\s+1\/2\s+1\s+graded 1/)
    expect((await sandlot(['runs', 'show', 'cli-run'])).stdout).toMatch(/graded 1/)
    expect((await sandlot(['runs', 'cancel', 'cli-run'])).code).toBe(0)
    const results = await sandlot(['runs', 'results', 'cli-run'])
    const rows = results.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows).toMatchObject([
      { key: 'a', outcome: 'graded', reward: 0.5, data: { said: 'a' } },
      { key: 'b', outcome: 'cancelled_user', reward: null },
    ])
    const rest = await sandlot(['runs', 'results', 'cli-run', '--from', rows[0].cursor])
    expect(JSON.parse(rest.stdout)).toMatchObject({ key: 'b' })
    expect(JSON.parse((await sandlot(['runs', 'show', 'cli-run', '--json'])).stdout)).toMatchObject(
      { run: { state: 'finished', outcomes: { graded: 1, cancelled_user: 1 } } },
    )
    expect((await sandlot(['runs', 'watch', 'cli-run'])).code).toBe(0)
    expect((await sandlot(['runs', 'delete', 'cli-run'])).code).toBe(0)
    expectFailure(await sandlot(['runs', 'show', 'cli-run']), 2, /run_unknown/)
    await expect(run.wait()).rejects.toMatchObject({ code: 'run_unknown' })
  })

  test('says what is wrong, and what to do', async () => {
    const nobody = 'sb_aaaaaaaaaaaaaaaaaaaa'
    expectFailure(await sandlot(['sandbox', 'exec', nobody, 'true']), 2, /sandbox_unknown/)
    expectFailure(await sandlot(['sandbox', 'stop', nobody]), 2, /sandbox_unknown/)
    expectFailure(await sandlot(['sandbox', 'stop', 'nonsense']), 2, /nonsense/)
    expectFailure(await sandlot(['runs', 'show', 'nobodys']), 2, /run_unknown/)
    expectFailure(await sandlot(['runs', 'cancel', 'nobodys']), 2, /run_unknown/)
    const create = (...argv: string[]) => sandlot(['sandbox', 'create', ...argv])
    expectFailure(await create('--from', 'im_aaaaaaaaaaaaaaaaaaaa'), 2, /image_unknown/)
    const from = ['--from', given.image]
    expectFailure(await create(...from, '--memory', '1MiB'), 2, /96MiB/)
    expectFailure(await create(...from, '--memory', 'lots'), 2, /lots/)
    expectFailure(await create(...from, '--disk', '500TiB'), 2, /--disk: .* in all/)
    expectFailure(await create(...from, '--pids', '1'), 2, /pids/)
    expectFailure(await create(...from, '--keep-warm', 'soon'), 2, /soon/)
    expectFailure(await create(...from, '--env', 'NOVALUE'), 2, /NAME=VALUE/)
    for (const argv of [['nonsense'], ['sandbox', 'create'], ['serve', '--port', '99999']]) {
      const end = await sandlot(argv)
      expect(end.code).not.toBe(0)
      expect(end.stderr).toMatch(/error: .*(\n.*)*sandlot help/)
    }
    const away = await runCommand(['ps'], {
      environment: { SANDLOT_URL: NOBODYS_URL, SANDLOT_API_KEY: 'none' },
    })
    expectFailure(away, 1, /unreachable/)
    const wrong = { ...given.daemon.environment, SANDLOT_API_KEY: 'none' }
    expectFailure(await runCommand(['ps'], { environment: wrong }), 2, /unauthorized/)
  })

  describe('serving', () => {
    let directory = ''
    beforeAll(async () => {
      directory = await mkdtemp('/var/tmp/sandlot-e2e-cli-')
    })
    afterAll(async () => await rm(directory, { recursive: true, force: true }))

    const serve = (...argv: string[]) =>
      runCommand([
        ...['serve', '--port', '0', '--run-directory', join(directory, 'run')],
        ...['--data-directory', join(directory, 'data'), ...argv],
      ])

    test('refuses a port in use, another daemon’s data, and a place that is no directory', async () => {
      const taken = createServer()
      taken.listen(0, '127.0.0.1')
      await once(taken, 'listening')
      const { port } = taken.address() as { port: number }
      expectFailure(
        await serve('--port', String(port)),
        2,
        new RegExp(`listens on 127.0.0.1:${port}`),
      )
      taken.close()
      const { dataDirectory, runDirectory } = given.daemon
      expectFailure(await serve('--data-directory', dataDirectory), 2, /another|in use/i)
      expectFailure(
        await serve('--run-directory', runDirectory, '--data-directory', dataDirectory),
        2,
        /another|in use/i,
      )
      const argv = ['serve', '--port', '0', '--data-directory', join(directory, 'data')]
      const without = { environment: { SANDLOT_RUNSC: join(directory, 'no-runsc') } }
      expectFailure(await runCommand(argv, without), 1, /SANDLOT_RUNSC/)
      await writeFile(join(directory, 'file'), '')
      expectFailure(await serve('--data-directory', join(directory, 'file')), 2, /file/)
      expect(
        (await given.client.sandboxes.create({ from: given.image }).then((each) => each.stop()))
          .state,
      ).toBe('stopped')
    })

    test('drains when it is told to, lets what runs end, and answers the next start', async () => {
      const environment = {
        SANDLOT_DATA_DIRECTORY: join(directory, 'data'),
        SANDLOT_RUN_DIRECTORY: join(directory, 'run'),
        SANDLOT_DRIVER: 'fake',
      }
      const daemon = startCommand(['serve', '--port', '0', '--pool', '0'], environment)
      const lines: string[] = []
      createInterface({ input: daemon.stderr }).on('line', (line) => lines.push(line))
      // All that it said has been read by then.
      const closed = once(daemon, 'close')
      const announced = join(directory, 'run/daemon.json')
      const said = await until('it serves', async () =>
        JSON.parse(await readFile(announced, 'utf8').catch(() => 'null')),
      )
      const { url } = said as { url: string }
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      expect(await runCommand(['ps'], { environment })).toMatchObject({ code: 0 })
      daemon.kill('SIGTERM')
      expect((await closed)[0]).toBe(0)
      expect(lines.join('\n')).toMatch(/draining/)
      await expect(readFile(announced)).rejects.toThrow('ENOENT')
      expectFailure(await runCommand(['ps'], { environment }), 1, /sandlot serve/)
    })
  })

  test('starts a daemon for a script of its own, and ends it with the script', async () => {
    const directory = await mkdtemp('/var/tmp/sandlot-e2e-local-')
    try {
      const script = join(directory, 'script.ts')
      const sdk = join(top, 'packages/sdk/src/index.ts')
      await writeFile(
        script,
        `import { Sandlot } from ${JSON.stringify(sdk)}
await using client = await Sandlot.local()
const { url } = await client.endpoint()
process.stdout.write(JSON.stringify({ url, sandboxes: await Array.fromAsync(client.sandboxes.list()) }))
`,
      )
      const environment = {
        ...process.env,
        SANDLOT_DATA_DIRECTORY: join(directory, 'data'),
        SANDLOT_RUN_DIRECTORY: join(directory, 'run'),
        SANDLOT_POOL: '0',
      }
      const { stdout } = await execute(process.execPath, [script], { env: environment })
      const { url, sandboxes } = JSON.parse(stdout)
      expect(sandboxes).toEqual([])
      await expect(fetch(`${url}/healthz`)).rejects.toThrow()
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
