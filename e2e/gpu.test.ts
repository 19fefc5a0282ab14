import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { whyNoGvisor } from '@sandlot/testkit'
import type { Sandbox } from 'sandlot'
import { afterAll, describe, expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const directory = await mkdtemp('/var/tmp/sandlot-e2e-gpu-')
const cdi = join(directory, 'cdi')
await mkdir(cdi)
await writeFile(join(directory, 'libcuda.so.570'), 'the driver’s library')
await writeFile(join(directory, 'firmware-0'), 'of the first')
await writeFile(join(directory, 'firmware-1'), 'of the second')
await writeFile(join(directory, 'firmware-2'), 'of the third')

/** Two plain nodes of the machine in the place of GPUs: what is read from them tells them apart. */
await writeFile(
  join(cdi, 'fake.json'),
  JSON.stringify({
    cdiVersion: '0.6.0',
    kind: 'example.com/gpu',
    containerEdits: {
      env: ['NVIDIA_VISIBLE_DEVICES=void'],
      deviceNodes: [{ path: '/dev/fakegpuctl', hostPath: '/dev/full' }],
      mounts: [given('libcuda.so.570', '/usr/lib/fake/libcuda.so.1')],
      hooks: [
        hook('create-symlinks', '--link', 'libcuda.so.1::/usr/lib/fake/libcuda.so'),
        hook('update-ldcache', '--folder', '/usr/lib/fake'),
      ],
    },
    devices: [
      device('0', '/dev/zero', 'Fake H100'),
      device('1', '/dev/null', 'Fake A100'),
      // By the name of its control node the runtime looks for NVIDIA's driver, which this machine hasn't.
      device('2', '/dev/null', 'Driverless V100', '/dev/nvidia9'),
    ],
  }),
)
afterAll(async () => await rm(directory, { recursive: true, force: true }))

function device(
  name: string,
  hostPath: string,
  model: string,
  path = `/dev/fake/gpu${name}`,
): object {
  const control = { path: '/dev/nvidiactl', hostPath: '/dev/full' }
  const isNvidia = path.startsWith('/dev/nvidia')
  const deviceNodes = [{ path, hostPath }, ...(isNvidia ? [control] : [])]
  const mounts = [given(`firmware-${name}`, `/lib/firmware/fake-${name}`)]
  const annotations = { 'sandlot.model': model }
  return { name, annotations, containerEdits: { deviceNodes, mounts } }
}

function given(file: string, containerPath: string): object {
  return {
    hostPath: join(directory, file),
    containerPath,
    options: ['ro', 'nosuid', 'nodev', 'rbind'],
  }
}

function hook(...args: string[]): object {
  const path = '/usr/bin/nvidia-cdi-hook'
  return { hookName: 'createContainer', path, args: ['nvidia-cdi-hook', ...args] }
}

/** What a world sees, and what it can't do. */
const SEEN = python(`
import errno, json, os
def read(path):
    try: return open(path).read()
    except OSError as e: return errno.errorcode[e.errno]
def attempt(f):
    try: f(); return 'done'
    except OSError as e: return errno.errorcode[e.errno]
print(json.dumps({
    'dev': sorted(os.listdir('/dev')), 'fake': sorted(os.listdir('/dev/fake')),
    'device': open('/dev/fake/' + os.listdir('/dev/fake')[0], 'rb').read(3).hex(),
    'libraries': [read('/usr/lib/fake/libcuda.so.1'), read('/usr/lib/fake/libcuda.so')],
    'firmware': [read('/lib/firmware/fake-0'), read('/lib/firmware/fake-1')],
    'env': [os.environ.get('NVIDIA_VISIBLE_DEVICES'), os.environ.get('LD_LIBRARY_PATH')],
    'write': attempt(lambda: open('/usr/lib/fake/libcuda.so.1', 'w')),
    'remove': attempt(lambda: os.remove('/usr/lib/fake/libcuda.so.1')),
    'node': attempt(lambda: os.mknod('/dev/fake/other', 0o600 | 0o020000, os.makedev(1, 8))),
}))`)

const environment = { SANDLOT_CDI_DIRECTORIES: cdi }

await story('sandboxes with GPUs', { pool: 0, environment }, (at) => {
  const create = (gpu: string | { count: number }) =>
    at.client.sandboxes.create({ from: at.image, resources: { gpu } })
  const seen = async (sandbox: Sandbox) => JSON.parse((await sandbox.exec(SEEN)).stdout)
  const refusal = (work: Promise<unknown>) => work.then(String, (error) => error)

  test('each sees its own devices, files and variables, and not another’s', async () => {
    await using first = await create('H100')
    await using second = await create('A100')
    const one = await seen(first)
    expect(one).toMatchObject({
      ...{ fake: ['gpu0'], device: '000000' },
      libraries: ['the driver’s library', 'the driver’s library'],
      firmware: ['of the first', 'ENOENT'],
      env: ['void', '/usr/lib/fake'],
    })
    expect(one.dev).toContain('fakegpuctl')
    expect(one.dev.filter((name: string) => /fuse|sda|mem/.test(name))).toEqual([])
    expect([one.write, one.remove, one.node]).not.toContain('done')
    expect(await seen(second)).toMatchObject({
      ...{ fake: ['gpu1'], device: '', firmware: ['ENOENT', 'of the second'] },
    })
    const view = await first.view()
    expect(view.resources.gpu).toEqual({ type: 'H100', count: 1 })
    expect(view.origin).toBe('cold')
    await using plain = await at.client.sandboxes.create({ from: at.image })
    const nothing = await plain.exec('ls /dev/fake /usr/lib/fake; echo $NVIDIA_VISIBLE_DEVICES')
    expect(nothing.stdout.trim()).toBe('')
  })

  test('a grader’s world has it too', async () => {
    const run = at.client.rollouts.map([{ id: 1 }], async () => {}, {
      ...{ from: at.image, resources: { gpu: 'any' } },
      grade: { run: ['sh', '-c', 'test -c /dev/fake/gpu* && cat /usr/lib/fake/libcuda.so'] },
    })
    const [row] = await Array.fromAsync(run.results())
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
  })

  test('one GPU, two episodes: the second waits for the first', async () => {
    let holders = 0
    let most = 0
    const run = at.client.rollouts.map(
      [{ id: 1 }, { id: 2 }],
      async ({ sandbox }) => {
        most = Math.max(most, ++holders)
        await sandbox.exec('true')
        holders -= 1
        return { reward: 1 }
      },
      { from: at.image, concurrency: 2, resources: { gpu: 'H100' } },
    )
    const rows = await Array.fromAsync(run.results())
    expect(rows.map(({ reward }) => reward)).toEqual([1, 1])
    expect(most).toBe(1)
  })

  test('who has which survives the daemon, and is free when the sandbox has ended', async () => {
    const kept = await create('H100')
    const lost = await create('A100')
    await at.daemon.kill()
    await at.daemon.killSandbox(lost.id)
    await at.daemon.start()
    expect(await refusal(create('H100'))).toMatchObject({ code: 'capacity' })
    await using again = await create('A100')
    expect((await seen(again)).fake).toEqual(['gpu1'])
    expect((await seen(kept)).fake).toEqual(['gpu0'])
    await kept.stop()
    await using next = await create('H100')
    expect((await seen(next)).fake).toEqual(['gpu0'])
  })

  test('what can’t be is refused by name', async () => {
    const { client, image: from } = at
    const never = await refusal(create({ count: 4 }))
    expect(String(never)).toContain('the machine has 1 × Fake H100, 1 × Fake A100, 1 × Driverless')
    const run = client.rollouts.map([{ id: 1 }], async () => ({ reward: 1 }), {
      ...{ from, resources: { gpu: 'B200' } },
    })
    expect(String(await refusal(run.wait()))).toContain('resources.gpu: 1 of B200 are asked for')
    const resources = { gpu: 'any' } as const
    const saved = client.sandboxes.create({ from, resources, checkpointable: true })
    expect(String(await refusal(saved))).toMatch(/memory .* can’t be saved: it has a GPU/)
    const driverless = await refusal(create('V100'))
    expect(driverless).toMatchObject({ code: 'gpu_driver_unsupported' })
    expect(driverless).toMatchObject({ hint: expect.stringContaining('list-supported-drivers') })
    await until('none is left', async () => (await at.daemon.ownedIds()).length === 0)
  })
})

const lacking = (await whyNoGvisor()) || lackingGpu()

/** Of a machine with a GPU of NVIDIA; every other one says that this was not seen. */
function lackingGpu(): string | undefined {
  if (!existsSync('/dev/nvidia0')) return 'this machine has no GPU: there is no /dev/nvidia0'
  if (!existsSync('/etc/cdi') && !existsSync('/var/run/cdi')) return 'this machine has no CDI file'
  return undefined
}

if (lacking !== undefined) {
  describe('a real GPU', () => test.skip(`skipped: ${lacking}`, () => {}))
} else {
  await story('a real GPU', { pool: 0 }, (at) => {
    test('is seen by the driver’s own program inside', async () => {
      await using sandbox = await at.client.sandboxes.create({
        ...{ from: at.image, resources: { gpu: 'any' } },
      })
      expect((await sandbox.exec('nvidia-smi -L')).stdout).toMatch(/^GPU 0: /)
    })
  })
}
