import type { Pty, Sandbox } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { Typist } from './harness/typist.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20
const SIZE = { columns: 80, rows: 24 }

/** Says when it runs in the foreground, when it does so again, and what size it is told of. */
const JOB =
  'trap "echo resumed" CONT; trap "stty size" WINCH; echo begun; while :; do sleep 0.1; done\n'

/** Reads on until the text is there; gives what was read. */
async function shows(pty: Pty, wanted: RegExp): Promise<string> {
  const chunks = pty[Symbol.asyncIterator]()
  let text = ''
  while (!wanted.test(text)) {
    const next = await chunks.next()
    if (next.done) throw new Error(`the terminal ended with ${JSON.stringify(text)}`)
    text += next.value.text
  }
  return text
}

await story('a terminal', { pool: 1 }, (given) => {
  let sandbox: Sandbox
  const typists: Typist[] = []

  beforeAll(async () => {
    const resources = { memory: '256MiB', disk: '64MiB' }
    sandbox = await given.client.sandboxes.create({
      from: given.image,
      resources,
      checkpointable: true,
      env: { PS1: 'ready> ' },
    })
  })
  afterAll(async () => await sandbox.stop())

  const shell = (...argv: string[]) => {
    const { environment } = given.daemon
    const typist = new Typist(['sandbox', 'shell', ...argv], environment)
    typists.push(typist)
    return typist
  }
  const plain = () => shell(sandbox.id, '--', '/bin/bash', '--norc')
  const idOf = async () => (await sandbox.ptys.list()).at(-1)?.exec ?? ''

  describe('for a person at the command line', () => {
    test('is a session with job control, in the size of theirs, and ends with its code', async () => {
      const typist = plain()
      await typist.shows(/ready> /)
      typist.type(
        'tty; stty size; echo $TERM; python3 -c "import os; print(os.getsid(0) == os.getppid())"\r',
      )
      await typist.shows(/\/dev\/pts\/\d+\r\n24 80\r\nxterm\r\nTrue\r\n.*ready> /)
      await sandbox.files.write('/job.sh', JOB)
      typist.type('sh /job.sh\r')
      await typist.shows(/begun\r\n/)
      typist.resize(132, 43)
      await typist.shows(/43 132\r\n/)
      typist.type('\x1a')
      await typist.shows(/Stopped +sh \/job.sh\r\n.*ready> /)
      typist.type('fg\r')
      await typist.shows(/resumed\r\n/)
      typist.type('\x03')
      await typist.shows(/ready> /)
      typist.type('echo $?\r')
      await typist.shows(/[\r\n]130\r\n.*ready> /)
      typist.type('grüße\x7f\x7f\x7f\x7f\x7fecho done\r')
      await typist.shows(/[\r\n]done\r\n.*ready> /)
      typist.type('(exit 7)\r')
      await typist.shows(/ready> /)
      typist.type('\x04')
      expect(await typist.end).toEqual({ code: 7, restored: true })
    })

    test('runs a command of theirs as the user they name', async () => {
      const program = `
import os, sys
print(os.getuid(), *os.get_terminal_size(), sys.stdin.isatty())
for what in (lambda: os.ttyname(0), lambda: os.open('/dev/tty', os.O_RDWR)):
    try: print('got', what())
    except OSError as error: print('not', error)
`
      const typist = shell('--user', '65534:65534', sandbox.id, '--', 'python3', '-c', program)
      await typist.shows(/65534 80 24 True\r\ngot \/dev\/pts\/\d+\r\ngot \d+\r\n/)
      expect(await typist.end).toEqual({ code: 0, restored: true })
      const none = shell(sandbox.id, '--', 'no-such-program')
      await none.shows(/not found in the directories of PATH/)
      expect(await none.end).toEqual({ code: 1, restored: true })
    })

    test('is left by ~. and found again, with what was there', async () => {
      const first = plain()
      await first.shows(/ready> /)
      first.type('X=kept; printf "\\033[?1049h%s" full; sleep 1000\r')
      await first.shows(/1049hfull$/)
      const id = await idOf()
      first.type('\r~?~.')
      await first.shows(/~\. leaves/)
      await first.shows(new RegExp(`shell ${sandbox.id} --attach ${id}`))
      expect(first.screen).toContain('\x1b[?1049l')
      expect(await first.end).toEqual({ code: 0, restored: true })
      const second = shell(sandbox.id, '--attach', id)
      await second.shows(/1049hfull/)
      second.type('\x03')
      await second.shows(/ready> /)
      second.type('echo $X\r')
      await second.shows(/[\r\n]kept\r\n.*ready> /)
      const third = shell(sandbox.id, '--attach', id)
      await second.shows(/somebody else attached/)
      expect(await second.end).toEqual({ code: 1, restored: true })
      await third.shows(/kept/)
      const list = await runCommand(['sandbox', 'shell', sandbox.id, '--list'], given.daemon)
      expect(list.stdout).toMatch(new RegExp(`${id} +running .*/bin/bash --norc`))
      const kill = ['sandbox', 'shell', sandbox.id, '--kill', id]
      expect(await runCommand(kill, given.daemon)).toMatchObject({ code: 0, stdout: '' })
      expect(await third.end).toEqual({ code: 137, restored: true })
    })

    test('goes on when the command line is killed, and gives theirs back where it can', async () => {
      const killed = plain()
      await killed.shows(/ready> /)
      killed.type('X=here\r')
      await killed.shows(/ready> /)
      const id = await idOf()
      await killed.signal('SIGKILL')
      expect(await killed.end).toMatchObject({ code: -9 })
      const ended = shell(sandbox.id, '--attach', id)
      await ended.shows(/ready> /)
      ended.type('echo $X\r')
      await ended.shows(/[\r\n]here\r\n.*ready> /)
      await ended.signal('SIGTERM')
      expect(await ended.end).toEqual({ code: 143, restored: true })
      await sandbox.ptys.kill(id)
    })

    test('is the same one after a crash of the daemon', async () => {
      const typist = plain()
      await typist.shows(/ready> /)
      typist.type('X=before; (sleep 1; echo mean; echo while) &\r')
      await typist.shows(/\[1\] \d+\r\n/)
      await given.daemon.kill()
      await given.daemon.start()
      await typist.shows(/mean\r\nwhile\r\n/)
      typist.type('echo $X\r')
      await typist.shows(/[\r\n]before\r\n[\s\S]*ready> /)
      typist.type('exit\r')
      expect(await typist.end).toEqual({ code: 0, restored: true })
    })

    test('is a plain command where it is fed by a pipe', async () => {
      const { environment } = given.daemon
      const piped = (argv: string[], input: string) =>
        runCommand(['sandbox', 'shell', ...argv], { environment, input })
      expect(await piped([sandbox.id], 'echo $((40 + 2)); tty; exit 3\n')).toEqual({
        code: 3,
        stdout: '42\nnot a tty\n',
        stderr: '',
      })
      expect(await piped([sandbox.id, '--', 'cat'], 'fed')).toMatchObject({ stdout: 'fed' })
      const refused = await piped([sandbox.id, '--attach', 'ex_1'], '')
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expect(refused.stderr).toMatch(/standard input is no terminal[\s\S]*hint: /)
      const both = await piped([sandbox.id, '--attach', 'ex_1', '--', 'ls'], '')
      expect(both).toMatchObject({ code: 2 })
    })
  })

  describe('for a program', () => {
    test('that nobody reads goes on in bounded memory, and says what was dropped', async () => {
      const flood = await sandbox.pty({ command: ['yes', 'x'.repeat(70)], size: SIZE })
      await shows(flood, /x{70}\r\n/)
      flood.detach()
      const before = given.daemon.memory().nowBytes
      await until('much was dropped', async () => {
        const pty = await sandbox.ptys.attach(flood.id, { from: flood.offset })
        const { value } = await pty[Symbol.asyncIterator]().next()
        pty.detach()
        return value?.droppedBytes > 4 * MIB
      })
      expect(given.daemon.memory().nowBytes - before).toBeLessThan(32 * MIB)
      const reader = await sandbox.ptys.attach(flood.id)
      await shows(reader, /x{70}\r\n/)
      // It is held up by a reader that doesn't read, and ^C reaches it all the same.
      await reader.write('\x03')
      for await (const _ of reader);
      expect(await reader.result).toMatchObject({ signal: 2, killed: false })
    })

    test('takes a paste that nobody reads without more memory, and ends by a hang-up', async () => {
      const pty = await sandbox.pty({ command: 'stty raw; echo up; exec sleep 1000', size: SIZE })
      await shows(pty, /up/)
      const given = new AbortController()
      const paste = pty.write(new Uint8Array(2 * MIB).fill(0x61)).catch(() => given.abort())
      await pty.kill(1)
      expect(await pty.result).toMatchObject({ signal: 1 })
      await paste
    })

    test('ends with its shell, whose other processes may live on without it', async () => {
      const text = `(trap "" HUP; sleep 0.2; echo late; echo on > /tmp/late; exec sleep 1000) & echo up`
      const pty = await sandbox.pty({ command: text, size: SIZE })
      expect(await shows(pty, /up/)).toContain('up')
      const { exitCode, left } = await pty.result
      expect(exitCode).toBe(0)
      expect(left).toBeGreaterThan(0)
      await until('it has written', async () => (await sandbox.exec('cat /tmp/late')).stdout !== '')
      const processes = async () =>
        (await sandbox.ptys.list()).find(({ exec }) => exec === pty.id)?.processes
      expect(await processes()).toBe(1)
      expect(await sandbox.ptys.kill(pty.id)).toEqual({ processes: 1 })
      await until('it is gone', async () => (await processes()) === 0)
      expect(await sandbox.ptys.kill(pty.id)).toEqual({ processes: 0 })
    })

    test('keeps its sandbox while somebody has it, and no longer', async () => {
      await using brief = await given.client.sandboxes.create({ from: given.image, keepWarm: '4s' })
      const pty = await brief.pty({ command: 'sleep 6; echo still; exec sleep 1000', size: SIZE })
      await shows(pty, /still/)
      expect(await brief.view()).toMatchObject({ state: 'running' })
      pty.detach()
      await until('it ended', async () => (await brief.view()).ending?.kind === 'expired')
    })

    test('survives a pause with its state', async () => {
      const first = await sandbox.pty({ command: ['/bin/bash', '--norc'], size: SIZE })
      await shows(first, /ready> /)
      await first.write('X=slept; cd /tmp\r')
      await shows(first, /X=slept[\s\S]*ready> /)
      const lost = first.result.catch((error) => error.code)
      await sandbox.pause()
      expect(await lost).toBe('sandbox_paused')
      await sandbox.resume()
      const pty = await sandbox.ptys.attach(first.id, { from: first.offset, size: SIZE })
      await pty.write('echo $X $PWD; stty size\r')
      // Before bash prompts it sets the size that it has just read once more: a change in between would be undone.
      await shows(pty, /slept \/tmp\r\n24 80\r\n[\s\S]*ready> /)
      await pty.resize({ columns: 100, rows: 30 })
      await pty.write('stty size; exit 4\r')
      await shows(pty, /30 100\r\n/)
      expect(await pty.result).toMatchObject({ exitCode: 4 })
    })
  })
})
