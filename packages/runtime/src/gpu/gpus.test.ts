import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lendGpus } from './lend.ts'
import { machineGpus } from './machine-gpus.ts'
import { isOfModel } from './models.ts'

let directory: string
const settings = () => ({
  cdiDirectories: [join(directory, 'cdi')],
  driverDirectory: join(directory, 'driver'),
})

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-gpus-'))
  await mkdir(join(directory, 'cdi'))
})
afterEach(async () => await rm(directory, { recursive: true }))

interface Fake {
  readonly name: string
  readonly node: string
  readonly host?: string
  readonly annotations?: Record<string, string>
  readonly more?: object
}

/** Plain nodes of the machine in the place of GPUs. */
async function write(devices: readonly Fake[], common: object = {}, file = 'gpus.json') {
  const cdi = {
    cdiVersion: '0.6.0',
    kind: 'nvidia.com/gpu',
    containerEdits: common,
    devices: devices.map(({ name, node, host = '/dev/null', annotations = {}, more = {} }) => ({
      name,
      annotations,
      containerEdits: { deviceNodes: [{ path: node, hostPath: host }], ...more },
    })),
  }
  await writeFile(join(directory, 'cdi', file), JSON.stringify(cdi))
}

async function driver(minor: number, model: string) {
  const place = join(directory, 'driver', `0000:0${minor}:00.0`)
  await mkdir(place, { recursive: true })
  await writeFile(
    join(place, 'information'),
    `Model: \t\t ${model}\nIRQ:   \t\t 35\nGPU UUID: \t GPU-${minor}\nDevice Minor: \t ${minor}\n`,
  )
}

test('a device has one name, and its model by the driver or by its file', async () => {
  await driver(0, 'NVIDIA H100 80GB HBM3')
  await write([
    { name: '0', node: '/dev/nvidia0' },
    { name: 'GPU-0', node: '/dev/nvidia0' },
    { name: '1', node: '/dev/nvidia1', annotations: { 'sandlot.model': 'NVIDIA A100-SXM4-80GB' } },
    { name: '2', node: '/dev/nvidia2' },
  ])
  expect(await machineGpus(settings())).toEqual({
    devices: [
      { name: 'nvidia.com/gpu=0', model: 'NVIDIA H100 80GB HBM3' },
      { name: 'nvidia.com/gpu=1', model: 'NVIDIA A100-SXM4-80GB' },
      { name: 'nvidia.com/gpu=2', model: 'unknown' },
    ],
    problems: [],
  })
})

test('of one name the last file counts', async () => {
  const of = (model: string, host: string) => ({
    ...{ name: '0', node: '/dev/nvidia0', host },
    annotations: { 'sandlot.model': model },
  })
  await write([of('old', '/dev/null')], {}, 'a.json')
  await write([of('new', '/dev/zero')], {}, 'b.json')
  const { devices } = await machineGpus(settings())
  expect(devices).toEqual([{ name: 'nvidia.com/gpu=0', model: 'new' }])
  const { nodes } = await lendGpus(settings(), ['nvidia.com/gpu=0'])
  expect(nodes).toEqual([{ path: '/dev/nvidia0', hostPath: '/dev/zero' }])
})

test('without files there are none, and no problem', async () => {
  const none = { cdiDirectories: ['/nowhere'], driverDirectory: '/nowhere' }
  expect(await machineGpus(none)).toEqual({ devices: [], problems: [] })
})

test('what can’t be given is named', async () => {
  await write([
    { name: '0:1', node: '/dev/nvidia0' },
    { name: '3', node: '/dev/nvidia3', host: '/dev/no-such-node' },
  ])
  await writeFile(join(directory, 'cdi', 'broken.yaml'), 'kind: [')
  const { devices, problems } = await machineGpus(settings())
  expect(devices).toEqual([])
  expect(problems.join('\n')).toMatch(/broken\.yaml:\d+: /)
  expect(problems.join('\n')).toContain('nvidia.com/gpu=0:1 is a part of a GPU (MIG)')
  expect(problems.join('\n')).toContain('there is no /dev/no-such-node on this machine')
})

test('edits of the file and of the devices come together, each once, and hooks become what they do', async () => {
  const library = join(directory, 'libcuda.so.570')
  await writeFile(library, 'cuda')
  const hook = (...args: string[]) => ({
    hookName: 'createContainer',
    path: '/usr/bin/nvidia-cdi-hook',
    args: ['nvidia-cdi-hook', ...args],
  })
  await write(
    [
      { name: '0', node: '/dev/nvidia0', more: { env: ['ONE=1'] } },
      { name: '1', node: '/dev/nvidia1', host: '/dev/zero', more: { env: ['TWO=2'] } },
    ],
    {
      env: ['NVIDIA_VISIBLE_DEVICES=void'],
      deviceNodes: [{ path: '/dev/nvidiactl', hostPath: '/dev/full' }],
      mounts: [{ hostPath: library, containerPath: '/usr/lib/libcuda.so.1', options: ['ro'] }],
      hooks: [
        hook('create-symlinks', '--link', 'libcuda.so.1::/usr/lib/libcuda.so'),
        hook('update-ldcache', '--folder', '/usr/lib'),
        hook('enable-cuda-compat', '--host-driver-version=570'),
      ],
    },
  )
  expect(await lendGpus(settings(), ['nvidia.com/gpu=0', 'nvidia.com/gpu=1'])).toEqual({
    nodes: [
      { path: '/dev/nvidiactl', hostPath: '/dev/full' },
      { path: '/dev/nvidia0', hostPath: '/dev/null' },
      { path: '/dev/nvidia1', hostPath: '/dev/zero' },
    ],
    mounts: [
      { path: '/usr/lib/libcuda.so.1', hostPath: library },
      { path: '/usr/lib/libcuda.so', hostPath: library },
    ],
    env: { NVIDIA_VISIBLE_DEVICES: 'void', ONE: '1', TWO: '2', LD_LIBRARY_PATH: '/usr/lib' },
  })
  expect((await lendGpus(settings(), ['nvidia.com/gpu=1'])).nodes).not.toContainEqual(
    expect.objectContaining({ path: '/dev/nvidia0' }),
  )
})

test('a hook that nobody knows, a file that is not there, a device that is gone: refused by name', async () => {
  const more = {
    hooks: [{ hookName: 'prestart', path: '/bin/own-hook', args: ['own-hook', 'do'] }],
  }
  await write([{ name: '0', node: '/dev/nvidia0', more }])
  await expect(lendGpus(settings(), ['nvidia.com/gpu=0'])).rejects.toThrow('/bin/own-hook do')
  const mounts = [{ hostPath: '/no/lib.so', containerPath: '/lib.so' }]
  await write([{ name: '0', node: '/dev/nvidia0', more: { mounts } }])
  await expect(lendGpus(settings(), ['nvidia.com/gpu=0'])).rejects.toThrow('/no/lib.so')
  await expect(lendGpus(settings(), ['nvidia.com/gpu=9'])).rejects.toThrow('nvidia.com/gpu=9')
})

test.each([
  ['NVIDIA H100 80GB HBM3', 'H100', true],
  ['NVIDIA H100 80GB HBM3', 'h100 80gb', true],
  ['NVIDIA H100 80GB HBM3', 'H10', false],
  ['NVIDIA L40S', 'L4', false],
  ['NVIDIA A100-SXM4-80GB', 'a100', true],
  ['NVIDIA GeForce RTX 4090', 'RTX 4090', true],
  ['unknown', undefined, true],
  ['unknown', 'H100', false],
])('%s asked for as %s', (model, type, wanted) => {
  expect(isOfModel(model, type)).toBe(wanted)
})
