import type { Sandbox, SandboxOptions } from 'sandlot'
import { describe, expect, test } from 'vitest'
import { FORK_BOMB, python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** What programs believe the machine to be, by every way in which they ask. */
const MACHINE = python(`
import os, re
def count(path, pattern):
    return len(re.findall(pattern, open(path).read(), re.M))
print('cpu_count', os.cpu_count())
print('affinity', len(os.sched_getaffinity(0)))
print('online', os.sysconf('SC_NPROCESSORS_ONLN'))
print('cpuinfo', count('/proc/cpuinfo', '^processor'))
print('stat', count('/proc/stat', '^cpu[0-9]'))
print('sys', len([n for n in os.listdir('/sys/devices/system/cpu') if re.fullmatch('cpu[0-9]+', n)]) if os.path.isdir('/sys/devices/system/cpu') else 'none')
print('MemTotal', re.search(r'MemTotal: +(\\d+)', open('/proc/meminfo').read())[1])
print('nofile', __import__('resource').getrlimit(7)[0])
`)

await story('the limits of a sandbox', { pool: 1 }, (given) => {
  const create = (options: Partial<SandboxOptions> = {}): Promise<Sandbox> =>
    given.client.sandboxes.create({ from: given.image, ...options })

  describe('each that a command meets, is in its result', () => {
    test('time, output, processes, the disk, shared memory, the size of a file', async () => {
      await using sandbox = await create({
        resources: { memory: '256MiB', disk: '32MiB', pids: 24, openFiles: 64, fileSize: '8MiB' },
      })
      expect(await sandbox.exec('true')).toMatchObject({ limits: [] })
      expect(await sandbox.exec('sleep 60', { timeout: 200 })).toMatchObject({ limits: ['time'] })
      expect(await sandbox.exec('yes | head -c 4000000')).toMatchObject({ limits: ['output'] })
      const big = await sandbox.exec(['dd', 'if=/dev/zero', 'of=/big', 'bs=1M', 'count=16'])
      expect(big).toMatchObject({ signal: 25, limits: ['fileSize'] })
      const inShell = await sandbox.exec('dd if=/dev/zero of=/big bs=1M count=16; exit $?')
      expect(inShell).toMatchObject({ exitCode: 153, limits: ['fileSize'] })
      expect((await sandbox.files.stat('/big')).sizeBytes).toBe(8 * 2 ** 20)
      const opened = await sandbox.exec(
        python(
          "kept = []\ntry:\n  while True: kept.append(open('/etc/passwd'))\nexcept OSError as e: print(e.errno, len(kept) < 64)",
        ),
      )
      expect(opened).toMatchObject({ stdout: '24 True\n', limits: [] })
      const shm = await sandbox.exec('for n in 1 2 3 4; do cat /dev/zero >/dev/shm/$n; done')
      expect(shm.limits).toContain('disk')
      await sandbox.exec('rm /dev/shm/*')
      const bomb = await sandbox.exec(FORK_BOMB)
      expect(bomb).toMatchObject({ exitCode: 0, limits: ['pids'] })
      expect((await sandbox.view()).resources).toMatchObject({ openFiles: 64, fileSize: 2 ** 23 })
    })

    test('the processors', async () => {
      await using sandbox = await create({ resources: { cpu: { request: 0.1, limit: 0.1 } } })
      const busy = () => sandbox.exec('while :; do :; done', { timeout: '500ms' })
      // On a machine that is full it may not even get so much.
      await until('it is held up', async () => (await busy()).limits.includes('cpu'))
    })

    test('the processors, of an episode', async () => {
      await using run = given.client.rollouts.map(
        [{ id: 'busy' }],
        async ({ sandbox }) => {
          await sandbox.exec('while :; do :; done', { timeout: '3s' })
        },
        {
          from: given.image,
          resources: { cpu: { request: 0.1, limit: 0.1 } },
          grade: { run: async () => 1 },
        },
      )
      const [row] = await run.wait()
      expect(row).toMatchObject({ outcome: 'graded', reward: 1, flags: ['cpu'] })
    })
  })

  describe('show as the machine', () => {
    const small = { cpu: 1, memory: '256MiB', pids: 64 }
    const shown = {
      ...{ cpu_count: '1', affinity: '1', online: '1', cpuinfo: '1', stat: '1' },
      ...{ MemTotal: '262144', nofile: '16384' },
    }
    const kinds = {
      'one from the pool': { resources: { ...small, disk: '32MiB' } },
      'one that started cold': { resources: { ...small, disk: '32MiB' }, checkpointable: true },
      'one with a disk of its own': { resources: { ...small, disk: '1GiB' } },
    } satisfies Record<string, Partial<SandboxOptions>>
    const machineOf = async (sandbox: Sandbox) => {
      const { stdout } = await sandbox.exec(MACHINE)
      return Object.fromEntries(
        stdout
          .trim()
          .split('\n')
          .map((line) => line.split(' ')),
      )
    }
    test.for(Object.entries(kinds))('%s', async ([, options]) => {
      await using sandbox = await create(options)
      expect(await machineOf(sandbox)).toMatchObject(shown)
    })
  })
})
