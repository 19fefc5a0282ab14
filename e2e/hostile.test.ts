import type { Sandbox, SandboxOptions } from 'sandlot'
import { afterEach, describe, expect, test } from 'vitest'
import {
  FORK_BOMB,
  fill,
  OPEN_FILES,
  OPEN_SOCKETS,
  python,
  THREAD_BOMB,
  TINY_FILES,
  WILD_FORK_BOMB,
} from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20

await story('a hostile command', { pool: 2 }, (given) => {
  const create = (options: Partial<SandboxOptions> = {}): Promise<Sandbox> =>
    given.client.sandboxes.create({
      from: given.image,
      resources: { memory: '512MiB', disk: '64MiB', pids: 64 },
      ...options,
    })

  /** Whatever was done to it, commands, files and the way out work. */
  const expectAlive = async (sandbox: Sandbox): Promise<void> => {
    await sandbox.files.write('/tmp/alive', 'yes')
    const { stdout, exitCode } = await sandbox.exec(['cat', '/tmp/alive'])
    expect({ stdout, exitCode }).toEqual({ stdout: 'yes', exitCode: 0 })
  }

  /** Processes in it besides those of the command that looks. */
  const processesOf = async (sandbox: Sandbox): Promise<number> =>
    (await sandbox.execs()).reduce((sum, { processes }) => sum + processes, 0)

  afterEach(async () => {
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  describe('that will not end', () => {
    const DEAF = {
      'loops in the shell': 'echo here; while :; do :; done',
      'ignores every signal it may':
        'trap "" TERM INT HUP QUIT USR1; echo here; while :; do sleep 1; done',
      'stops itself': 'echo here; kill -STOP $$',
      'hides in sessions of its own':
        'echo here; setsid sh -c "trap \\"\\" TERM; (setsid sleep 1000 &) ; sleep 1000" & wait',
    }
    test.for(Object.entries(DEAF))(
      '%s, is killed with its tree at its deadline',
      async ([, text]) => {
        await using sandbox = await create()
        const end = await sandbox.exec(text, { timeout: '5s' })
        expect(end).toMatchObject({ timedOut: true, exitCode: null, signal: 9, stdout: 'here\n' })
        await until('its tree is gone', async () => (await processesOf(sandbox)) === 0)
        await expectAlive(sandbox)
      },
    )

    test('is killed when its caller has enough', async () => {
      await using sandbox = await create()
      const enough = new AbortController()
      const running = sandbox.exec('trap "" TERM; echo up; sleep 1000; sleep 1000', {
        stream: true,
        signal: enough.signal,
      })
      for await (const { text } of running) {
        if (text.includes('up')) enough.abort(new Error('enough'))
        break
      }
      await expect(running.result).rejects.toThrow('enough')
      await until('it is gone', async () => (await processesOf(sandbox)) === 0)
      await expectAlive(sandbox)
    })
  })

  describe('that multiplies', () => {
    test('is refused more processes, keeps nobody from killing it, and is cleared', async () => {
      await using sandbox = await create()
      const bomb = sandbox.exec(FORK_BOMB, { stream: true })
      const end = await bomb.wait()
      expect(end).toMatchObject({ exitCode: 0 })
      expect(end.left).toBeGreaterThan(20)
      expect(end.left).toBeLessThan(64)
      await given.client.sandboxes.get(sandbox.id)
      await until('they are counted', async () =>
        (await sandbox.execs()).some(
          ({ exec, processes }) => exec === bomb.id && processes === end.left,
        ),
      )
    })

    test('without end, dies at its deadline; the agent answers meanwhile', async () => {
      await using sandbox = await create()
      await using neighbour = await create()
      const bomb = sandbox.exec(WILD_FORK_BOMB, { timeout: '15s' })
      await until('the bomb is full', async () => (await processesOf(sandbox)) > 30)
      await sandbox.files.write('/work/still', 'here')
      expect(await sandbox.files.readText('/work/still')).toBe('here')
      await expectAlive(neighbour)
      expect(await bomb).toMatchObject({ timedOut: true, signal: 9 })
      await until('it is cleared', async () => (await processesOf(sandbox)) === 0)
      await expectAlive(sandbox)
    })

    test('into threads, is refused as well', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec(THREAD_BOMB)
      expect(end).toMatchObject({ exitCode: 0, stdout: 'refused\n' })
      await expectAlive(sandbox)
    })
  })

  describe('that fills', () => {
    const PLACES = {
      'the disk with one file': fill('/fill'),
      '/tmp': fill('/tmp/fill'),
      '/dev/shm': fill('/dev/shm/fill'),
      'the disk with tiny files': TINY_FILES,
    }
    test.for(Object.entries(PLACES))('%s, meets its own limit', async ([, command]) => {
      await using sandbox = await create()
      expect(await sandbox.exec(command)).toMatchObject({ exitCode: 0, stdout: 'ENOSPC\n' })
      const alive = await sandbox.exec('echo alive; rm -rf /fill /many /tmp/fill /dev/shm/fill')
      expect(alive).toMatchObject({ exitCode: 0, stdout: 'alive\n' })
      await expectAlive(sandbox)
    })

    test('a sparse file, takes what it wrote', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec('truncate -s 1T /sparse; echo; rm -f /sparse')
      expect(end.exitCode).toBe(0)
      await expectAlive(sandbox)
    })

    test('its table of files or sockets, meets its own limit', async () => {
      await using sandbox = await create()
      for (const command of [OPEN_FILES, OPEN_SOCKETS]) {
        expect(await sandbox.exec(command)).toMatchObject({ exitCode: 0, stdout: 'EMFILE True\n' })
      }
      await expectAlive(sandbox)
    })
  })

  describe('that floods', () => {
    test('with a gibibyte, keeps head and tail, holds up nobody and costs no memory', async () => {
      await using sandbox = await create()
      await sandbox.exec('true')
      const before = given.daemon.memory()
      const flood = sandbox.exec(
        python(`
import os
block = b'0123456789abcde\\n' * 65536
for n in range(1024): os.write(1, block)
os.write(2, b'done')
`),
      )
      const beside = await sandbox.exec('echo quick')
      expect(beside.stdout).toBe('quick\n')
      const end = await flood
      expect(end).toMatchObject({ exitCode: 0, stderr: 'done' })
      expect(end.stdoutBytes.length).toBeGreaterThan(MIB / 2)
      expect(end.stdoutBytes.length).toBeLessThanOrEqual(MIB + 64 * 1024)
      expect(end.stdoutDroppedBytes + end.stdoutBytes.length).toBe(2 ** 30)
      expect(end.stdout.startsWith('0123456789abcde\n')).toBe(true)
      expect(end.stdout.endsWith('0123456789abcde\n')).toBe(true)
      const grown = given.daemon.memory().nowBytes - before.nowBytes
      expect(grown).toBeLessThan(100 * MIB)
      const { usage } = await sandbox.view()
      expect(usage?.memoryPeakBytes).toBeLessThan(200 * MIB)
    })

    test('a reader that does not read, holds up itself alone', async () => {
      await using sandbox = await create()
      const flood = sandbox.exec('yes', { stream: true })
      let read = 0
      for await (const { bytes } of flood) {
        read += bytes.length
        if (read < 65_536) continue
        const beside = await sandbox.exec('seq 100000')
        expect(beside.stdout.length).toBe(588_895)
        break
      }
      await flood.kill()
      expect(await flood.result).toMatchObject({ signal: 9, killed: true })
    })

    test('with one line of a hundred megabytes, or with bytes that are no text', async () => {
      await using sandbox = await create()
      const line = await sandbox.exec('head -c 100000000 /dev/zero | tr "\\0" x')
      expect(line.stdoutDroppedBytes + line.stdoutBytes.length).toBe(100_000_000)
      expect(new Set(line.stdout)).toEqual(new Set(['x']))
      const all = Buffer.from(Array.from({ length: 1024 }, (_, byte) => byte % 256))
      await sandbox.files.write('/bytes', all)
      const { stdoutBytes, stdout } = await sandbox.exec('cat /bytes')
      expect(Buffer.from(stdoutBytes).equals(all)).toBe(true)
      expect(stdout).toBe(all.toString('utf8'))
      const ansi = await sandbox.exec("printf '\\033[31mred\\033[0m\\303'; printf '\\377' >&2")
      expect(ansi).toMatchObject({ stdout: '\u001b[31mred\u001b[0m\ufffd', stderr: '\ufffd' })
    })
  })

  describe('that leaves something behind', () => {
    const LEAVES = {
      'a child that holds the pipe': 'sleep 1000 & echo done',
      'a daemon with nohup': 'nohup sleep 1000 >/dev/null 2>&1 & echo done',
      'a session of its own': 'setsid sleep 1000 & echo done',
      'a double fork': '(setsid sh -c "sleep 1000 & exit" &) ; sleep 0.1; echo done',
    }
    test.for(Object.entries(LEAVES))('%s, has ended all the same', async ([, text]) => {
      await using sandbox = await create()
      const end = await sandbox.exec(text)
      expect(end).toMatchObject({ exitCode: 0, stdout: 'done\n' })
      // What it left goes on, so nobody waited for that; shells on the way to it may still end.
      await until('one goes on', async () => (await processesOf(sandbox)) === 1)
    })

    test('closes its streams and goes on, is waited for', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec('exec >&- 2>&-; sleep 0.2; touch /tmp/late; exit 3')
      expect(end).toMatchObject({ exitCode: 3, stdout: '' })
      expect(await sandbox.files.stat('/tmp/late')).toMatchObject({ kind: 'file' })
    })

    test('waits for input that nobody gives, gets the end of it', async () => {
      await using sandbox = await create()
      expect(await sandbox.exec('cat; read x; echo "ended $?"')).toMatchObject({
        stdout: 'ended 1\n',
      })
      expect(await sandbox.exec('tty; test -t 0; echo $?')).toMatchObject({
        stdout: 'not a tty\n1\n',
      })
    })
  })

  describe('that destroys', () => {
    test('by kill -9 -1, hits its own world', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec('sleep 1000 & kill -9 -1; echo survived')
      expect(end.timedOut).toBe(false)
      await expectAlive(sandbox)
    })

    test('the first process of its world, ends the world, not the sandbox', async () => {
      await using sandbox = await create()
      await sandbox.files.write('/work/answer', '42')
      const end = await sandbox.exec('kill 1; kill -TERM 1; kill -9 1; sleep 1000')
      expect(end).toMatchObject({ exitCode: null, signal: 9, timedOut: false })
      expect(await sandbox.files.readText('/work/answer')).toBe('42')
      await expect(sandbox.exec('true')).rejects.toMatchObject({
        ...{
          code: 'exec_failed',
          fault: 'workload',
          message: expect.stringMatching('world has ended'),
        },
      })
      expect(await sandbox.view()).toMatchObject({ state: 'running' })
    })

    test('every file, leaves the agent and the next sandbox alone', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec('rm -rf --no-preserve-root / 2>/dev/null; echo gone')
      expect(end).toMatchObject({ exitCode: 0, stdout: 'gone\n' })
      await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'exec_failed' })
      await sandbox.files.write('/work/after', 'files work')
      expect(await sandbox.files.readText('/work/after')).toBe('files work')
      await using next = await create()
      await expectAlive(next)
    })

    test('the shell, is its own loss alone', async () => {
      await using sandbox = await create()
      const end = await sandbox.exec(
        python("open('/bin/sh', 'wb').write(open('/bin/true', 'rb').read())"),
      )
      expect(end.exitCode).toBe(0)
      expect(await sandbox.exec('echo said')).toMatchObject({ exitCode: 0, stdout: '' })
      expect(await sandbox.exec(['echo', 'said'])).toMatchObject({ stdout: 'said\n' })
      await using next = await create()
      await expectAlive(next)
    })
  })
})
