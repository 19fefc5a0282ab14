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
print('configured', os.sysconf('SC_NPROCESSORS_CONF'))
print('cores', re.search(r'cpu cores\\s*: (\\d+)', open('/proc/cpuinfo').read())[1])
cpus = '/sys/devices/system/cpu'
print('directories', len([n for n in os.listdir(cpus) if re.fullmatch('cpu[0-9]+', n)]))
print('siblings', open(cpus + '/cpu0/topology/core_siblings').read().strip())
try: open(cpus + '/online', 'w'); print('sysfs written')
except OSError as e: print('sysfs', e.errno)
print('MemTotal', re.search(r'MemTotal: +(\\d+)', open('/proc/meminfo').read())[1])
import resource
print('nofile', resource.getrlimit(resource.RLIMIT_NOFILE)[0])
print('nproc', resource.getrlimit(resource.RLIMIT_NPROC)[0])
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

    test('processes of one user: others of the sandbox have theirs', async () => {
      const limit = 12
      await using sandbox = await create({
        resources: { memory: '256MiB', disk: '32MiB', pids: 48, processesPerUser: limit },
      })
      const user = '65534:65534'
      const watched = sandbox.exec('echo up; exec sleep 1000', { user, stream: true })
      // The bomb would leave it no place.
      await watched[Symbol.asyncIterator]().next()
      const bomb = await sandbox.exec(FORK_BOMB, { user })
      expect(bomb).toMatchObject({ exitCode: 0, stdout: 'refused\n', limits: ['processesPerUser'] })
      const next = await sandbox.exec('sleep 1000 & wait', { user })
      expect(next).toMatchObject({ exitCode: 2, limits: ['processesPerUser'] })
      // Who is somebody else has what it is promised, and no more.
      expect(await sandbox.exec('true')).toMatchObject({ exitCode: 0, limits: [] })
      const ofRoot = await sandbox.exec(FORK_BOMB)
      expect(ofRoot).toMatchObject({ stdout: 'refused\n', limits: ['processesPerUser'] })
      // What takes another name is counted for who started it.
      const other = await sandbox.exec(
        python(`
import os
try:
    os.setgid(1); os.setuid(1)
    for n in range(100):
        if os.fork() == 0: os.execvp('sleep', ['sleep', '1000'])
except OSError as e: print(e.errno, n < ${limit})
`),
        { user: 'daemon' },
      )
      expect(other).toMatchObject({ stdout: '11 True\n', limits: ['processesPerUser'] })
      expect((await sandbox.view()).resources).toMatchObject({ processesPerUser: limit })
      await sandbox.exec('kill -9 -1')
      await watched.result
      expect(await sandbox.exec('true', { user })).toMatchObject({ exitCode: 0, limits: [] })
    })

    test('processes of one user, of an episode', async () => {
      await using run = given.client.rollouts.map(
        [{ id: 'bomb' }],
        async ({ sandbox }) => {
          await sandbox.exec(FORK_BOMB, { user: '65534' })
        },
        {
          from: given.image,
          resources: { memory: '256MiB', pids: 48, processesPerUser: 12 },
          grade: { run: async () => 1 },
        },
      )
      const [row] = await run.wait()
      expect(row).toMatchObject({ outcome: 'graded', reward: 1, flags: ['processesPerUser'] })
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
          const busy = () => sandbox.exec('while :; do :; done', { timeout: '11s' })
          // A tenth of that is enough to be told; on a machine that is full it may not even get so much.
          await until('it is held up', async () => (await busy()).limits.includes('cpu'))
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
      ...{ configured: '1', cores: '1', directories: '1', siblings: '1', sysfs: '30' },
      ...{ MemTotal: '262144', nofile: '16384', nproc: '128' },
    }
    const kinds = {
      'one from the pool': { resources: { ...small, disk: '32MiB' } },
      'one that started cold': { resources: { ...small, disk: '32MiB' }, checkpointable: true },
      'one with a disk of its own': { resources: { ...small, disk: '1GiB' } },
    } satisfies Record<string, Partial<SandboxOptions>>
    const said = (stdout: string) => {
      const lines = stdout.trim().split('\n')
      return Object.fromEntries(lines.map((line) => line.split(' ')))
    }
    const machineOf = async (sandbox: Sandbox) => said((await sandbox.exec(MACHINE)).stdout)
    test.for(Object.entries(kinds))('%s', async ([, options]) => {
      await using sandbox = await create(options)
      expect(await machineOf(sandbox)).toMatchObject(shown)
    })

    test('copies of one, and what goes on from saved memory', async () => {
      const resources = { ...small, disk: '32MiB' }
      await using original = await create({ resources, checkpointable: true })
      expect(await machineOf(original)).toMatchObject(shown)
      const [copy] = await original.fork(1, { kind: 'memory' })
      const { id } = await original.snapshot({ kind: 'memory' })
      const restored = await given.client.sandboxes.create({ from: id })
      const files = await create({ from: (await original.snapshot()).id, resources })
      for (const each of [copy as Sandbox, restored, files]) {
        expect(await machineOf(each)).toMatchObject(shown)
        await each.stop()
      }
      await original.pause()
      await original.resume()
      expect(await machineOf(original)).toMatchObject(shown)
    })

    test('graders, in the episode’s sandbox and in one of the image alone', async () => {
      const grade = (where: 'same' | 'clean') =>
        given.client.rollouts.map([{ id: where }], async () => {}, {
          from: given.image,
          resources: { ...small, disk: '32MiB' },
          grade: {
            in: where,
            run: async ({ sandbox }) => {
              const { stdout } = await sandbox.exec(MACHINE)
              expect(said(stdout)).toMatchObject(shown)
              return 1
            },
          },
        })
      for (const where of ['same', 'clean'] as const) {
        await using run = grade(where)
        const [row] = await run.wait()
        expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
      }
    })
  })
})
