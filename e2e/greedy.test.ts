import { basename } from 'node:path'
import { type Sandbox, type SandboxOptions, SandlotError } from 'sandlot'
import { describe, expect, test } from 'vitest'
import { EAT_AT_ONCE, EAT_SLOWLY, python } from './harness/shells.ts'
import { story } from './harness/story.ts'

const MIB = 2 ** 20

/** A file in memory that has no name, so that no file system's size bounds it. */
const EAT_NAMELESS = python(`
import os
block = bytes(4 << 20)
f = os.memfd_create('hoard')
while True: os.write(f, block)
`)

/** Opens what has a descriptor, until it may not any more. */
const open = (what: string): readonly string[] =>
  python(`
import ctypes, errno, os, select, socket
libc = ctypes.CDLL(None, use_errno=True)
def called(name, *args):
    made = getattr(libc, name)(*args)
    if made < 0: raise OSError(ctypes.get_errno(), name)
    return made
kept = []
try:
    for n in range(100000): kept.append(${what})
except OSError as e: print(errno.errorcode[e.errno], len(kept) < 20000)
`)

await story('a greedy command', { pool: 2 }, (given) => {
  const create = (options: Partial<SandboxOptions> = {}): Promise<Sandbox> =>
    given.client.sandboxes.create({
      from: given.image,
      resources: { memory: '192MiB', disk: '32MiB', pids: 32 },
      ...options,
    })

  test('that eats memory of any kind, ends its own sandbox, and that is told', async () => {
    await using neighbour = await create()
    const kinds = { slowly: EAT_SLOWLY, 'at once': EAT_AT_ONCE, 'without a name': EAT_NAMELESS }
    const ends = Object.entries(kinds).map(async ([kind, command]) => {
      const sandbox = await create()
      const error = await sandbox.exec(command).catch((thrown) => thrown)
      expect(error, kind).toBeInstanceOf(SandlotError)
      expect(error, kind).toMatchObject({ code: 'sandbox_gone' })
      expect(error.message, kind).toContain('oom_limit')
      const { state, ending, usage } = await sandbox.view()
      expect({ kind, state, ending: ending?.kind }).toEqual({
        ...{ kind, state: 'stopped', ending: 'oom_limit' },
      })
      expect(ending?.detail, kind).toMatch(/its limit was hit/)
      expect(usage?.memoryPeakBytes, kind).toBeGreaterThan(180 * MIB)
      expect(await given.daemon.livesOn(sandbox.id), kind).toBe(false)
    })
    await Promise.all(ends)
    expect(await neighbour.exec('echo on')).toMatchObject({ stdout: 'on\n' })
  })

  test('that reads and writes more files than it has memory, is held up by nothing', async () => {
    await using sandbox = await create({ resources: { memory: '128MiB', disk: '512MiB' } })
    const end = await sandbox.exec(
      'head -c 300000000 /dev/zero >/large; for n in 1 2 3; do cat /large >/dev/null; done; wc -c </large',
    )
    expect(end).toMatchObject({ exitCode: 0, stdout: '300000000\n', limits: [] })
  })

  describe('that opens all it can of', () => {
    const THINGS = {
      pipes: 'os.pipe()',
      'watches of files': "called('inotify_init1', 0)",
      timers: "called('timerfd_create', 1, 0)",
      'events to wait for': 'select.epoll()',
      terminals: 'os.openpty()',
    }
    test('pipes, watches, timers, events or terminals, meets its own limit', async () => {
      await using sandbox = await create()
      for (const [thing, what] of Object.entries(THINGS)) {
        const { exitCode, stdout } = await sandbox.exec(open(what))
        expect({ thing, exitCode }).toEqual({ thing, exitCode: 0 })
        expect(stdout, thing).toMatch(/^(EMFILE|ENOSPC) True\n$/)
      }
      expect(await sandbox.exec('echo on')).toMatchObject({ stdout: 'on\n' })
    })
  })

  test('for a terminal, a password or a page turned, is given none and goes on', async () => {
    await using sandbox = await create()
    const wishes = ['passwd', 'su nobody -c id', 'more /etc/passwd', 'cat', 'read line']
    for (const wish of wishes) {
      const end = await sandbox.exec(wish, { timeout: '20s' })
      expect({ wish, timedOut: end.timedOut }).toEqual({ wish, timedOut: false })
    }
  })

  test('for the kernel’s log, is told of no host', async () => {
    await using sandbox = await create()
    const { stdout, stderr } = await sandbox.exec('dmesg; cat /dev/kmsg; cat /proc/kmsg')
    const { dataDirectory } = given.daemon
    expect(`${stdout}${stderr}`).not.toContain(basename(dataDirectory))
    expect(stdout).not.toMatch(/Linux version .*(x86_64-linux-gnu|Hypervisor|BIOS)/)
  })
})
