import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { describeCdiProblem, parseCdi } from './read-cdi.ts'

const NVIDIA = new URL('fixtures/nvidia.yaml', import.meta.url)

async function problem(text: string): Promise<string> {
  const read = await parseCdi('/etc/cdi/a.yaml', text)
  return 'message' in read ? describeCdiProblem(read) : 'none'
}

test('a file as NVIDIA’s toolkit writes it', async () => {
  const read = await parseCdi('nvidia.yaml', await readFile(NVIDIA, 'utf8'))
  expect(read).toMatchObject({ kind: 'nvidia.com/gpu', cdiVersion: '0.5.0' })
  if ('message' in read) throw new Error(read.message)
  expect(read.devices.map(({ name }) => name)).toEqual([
    ...['0', '1', 'GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c', '2:0', 'all'],
  ])
  expect(read.containerEdits.mounts).toHaveLength(2)
})

test('JSON, with what newer versions may say', async () => {
  const device = { name: '0', containerEdits: { deviceNodes: [{ path: '/dev/a', fileMode: 438 }] } }
  const file = { cdiVersion: '1.1.0', kind: 'a.b/gpu', devices: [device], annotations: { x: 'y' } }
  expect(await parseCdi('a.json', JSON.stringify(file, null, 2))).toMatchObject({
    kind: 'a.b/gpu',
    annotations: { x: 'y' },
  })
})

test.each([
  ['no YAML', 'kind: [a\nb: c', /^\/etc\/cdi\/a\.yaml:\d+: /],
  [
    'a key twice',
    'kind: a.b/gpu\nkind: a.b/gpu\n',
    /^\/etc\/cdi\/a\.yaml:2: Map keys must be unique/,
  ],
  [
    'a number for a version',
    'cdiVersion: 0.5\nkind: a.b/gpu\ndevices: []\n',
    /a\.yaml:1: cdiVersion: /,
  ],
  [
    'a version of another time',
    'cdiVersion: 9.0.0\nkind: a.b/gpu\ndevices: []\n',
    /:1: cdiVersion: is no version/,
  ],
  ['no devices', 'cdiVersion: 0.6.0\nkind: a.b/gpu\n', /a\.yaml: devices: /],
  [
    'a path that leads elsewhere',
    'cdiVersion: 0.6.0\nkind: a.b/gpu\ndevices:\n- name: x\n  containerEdits:\n    mounts:\n    - hostPath: /a\n      containerPath: /b/../c\n',
    /:8: devices\[0\]\.containerEdits\.mounts\[0\]\.containerPath: has `\.\.`/,
  ],
  [
    'a node outside of /dev',
    'cdiVersion: 0.6.0\nkind: a.b/gpu\ndevices:\n- name: x\n  containerEdits:\n    deviceNodes:\n    - path: /etc/passwd\n',
    /:7: .*is not below \/dev/,
  ],
  ['nothing', '', /a\.yaml: it: /],
])('%s is named with its line', async (_, text, wanted) => {
  expect(await problem(text)).toMatch(wanted)
})
