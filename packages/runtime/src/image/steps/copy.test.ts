import type { BuildStep } from '@sandlot/protocol'
import { type BuildBench, buildBench } from '@sandlot/testkit'
import { expect, test } from 'vitest'

const base = [
  { path: 'usr/bin/', mode: 0o711, uid: 3 },
  { path: 'usr/bin/sh', content: 'shell' },
  { path: 'bin', type: '2', linkPath: 'usr/bin' },
  { path: 'app/old', content: 'old' },
  { path: 'app/link', type: '2', linkPath: '/usr' },
  { path: 'etc/passwd', content: 'root:x:0:0::/:/bin/sh\nworker:x:1000:1001::/:/bin/sh\n' },
  { path: 'etc/group', content: 'root:x:0:\nusers:x:100:worker\n' },
] as const

function baseOf(at: BuildBench) {
  return { kind: 'tar', blob: at.tar(base) } as const
}

async function copied(
  members: Parameters<BuildBench['tar']>[0],
  options: {
    readonly to: string
    readonly file?: boolean
    readonly owner?: string
    readonly mode?: number
  },
): Promise<string[]> {
  await using at = await buildBench()
  const image = await at.build(baseOf(at), [{ kind: 'copy', blob: at.tar(members), ...options }])
  expect(at.machines).toEqual([])
  return (await at.layers(image)).flat().map((line) => line.trimEnd())
}

test('a directory’s content goes below the destination, which is made', async () => {
  const members = [
    { path: './' },
    { path: './d/', mode: 0o750, uid: 12, gid: 13 },
    { path: './d/a', content: 'A', mode: 0o640, uid: 12, mtimeSeconds: 7 },
    { path: './d/b', type: '1', linkPath: './d/a' },
    { path: './l', type: '2', linkPath: '../up' },
  ]
  expect(await copied(members, { to: '/new/place/' })).toEqual([
    'new directory 755 0:0 0',
    'new/place directory 755 0:0 1700000000',
    'new/place/d directory 750 12:13 1700000000',
    'new/place/d/a file 640 12:0 7 A',
    'new/place/d/b file 640 12:0 7 A',
    'new/place/l symlink 777 0:0 1700000000 ../up',
  ])
})

test('links of the image are followed, and its directories stay as they are', async () => {
  expect(await copied([{ path: 'tool', content: 'T' }], { to: '/bin' })).toEqual([
    'usr directory 755 0:0 0',
    'usr/bin directory 711 3:0 1700000000',
    'usr/bin/tool file 644 0:0 1700000000 T',
  ])
  const through = [{ path: 'app/link/bin/' }, { path: 'app/link/bin/x', content: 'X' }]
  expect((await copied(through, { to: '/' })).filter((line) => line.includes(' file '))).toEqual([
    'usr/bin/x file 644 0:0 1700000000 X',
  ])
})

test('a file takes the place of a file or a link', async () => {
  const lines = await copied(
    [
      { path: 'link', content: 'L' },
      { path: 'old', content: 'N' },
    ],
    {
      to: '/app',
    },
  )
  expect(lines.slice(1)).toEqual([
    'app/link file 644 0:0 1700000000 L',
    'app/old file 644 0:0 1700000000 N',
  ])
})

test.each([
  ['/app', 'app/one'],
  ['/new', 'new'],
  ['/new/', 'new/one'],
  ['/bin/one', 'usr/bin/one'],
])('one file copied to %s becomes %s', async (to, path) => {
  const lines = await copied([{ path: 'one', content: '1' }], { to, file: true })
  expect(lines.at(-1)).toBe(`${path} file 644 0:0 1700000000 1`)
})

test.each([
  ['worker', '1000:1001'],
  ['worker:users', '1000:100'],
  ['7', '7:7'],
  ['7:users', '7:100'],
  ['7:8', '7:8'],
  ['root', '0:0'],
])('the owner %s is %s', async (owner, ids) => {
  const lines = await copied([{ path: 'd/' }, { path: 'd/a' }], { to: '/', owner, mode: 0o700 })
  expect(lines).toEqual([`d directory 700 ${ids} 1700000000`, `d/a file 700 ${ids} 1700000000`])
})

test.each([
  ['an unknown owner', { owner: 'nobody' }, [], /"nobody" is no user/],
  ['an unknown group', { owner: 'root:nobody' }, [], /"nobody" is no group/],
  ['a path upwards', {}, [{ path: '../x' }], /\.\./],
  ['an absolute path', {}, [{ path: '/x' }], /absolute/],
  ['a device', {}, [{ path: 'dev/null', type: '3', device: [1, 3] }], /device/],
  ['a deletion', {}, [{ path: 'x', type: '3', device: [0, 0] }], /device/],
  ['a link to nothing of it', {}, [{ path: 'x', type: '1', linkPath: 'app/old' }], /hard link/],
  ['a file over a directory', {}, [{ path: 'app' }], /\/app is a directory of the image/],
  ['a directory over a file', {}, [{ path: 'app/old/' }], /\/app\/old is a file of the image/],
  ['a path through a file', {}, [{ path: 'app/old/x' }], /leads through \/app\/old/],
  ['two files for one', { file: true }, [{ path: 'a' }, { path: 'b' }], /one file/],
  ['no file for one', { file: true }, [], /one file/],
] as const)('%s is refused', async (_name, options, members, message) => {
  await expect(copied([...members] as never, { to: '/', ...options })).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringMatching(message),
  })
})

test.each([
  ['/proc', '/proc'],
  ['/dev/shm/', '/dev/shm'],
  ['/sys/x', '/sys/x'],
  ['/through/x', '/proc/x'],
])('nothing is copied to %s, which no sandbox shows', async (to, place) => {
  await using at = await buildBench()
  const link = { path: 'through', type: '2', linkPath: 'proc' }
  const base = { kind: 'tar', blob: at.tar([link]) } as const
  const steps: BuildStep[] = [
    { kind: 'copy', blob: at.tar([{ path: 'a' }]), to },
    { kind: 'copyFrom', source: base, paths: ['/through'], to },
  ]
  for (const step of steps) {
    await expect(at.build(base, [step])).rejects.toMatchObject({
      code: 'image_source_invalid',
      message: expect.stringContaining(`${place} can't be copied to: each sandbox has`),
    })
  }
})

test('an empty directory over one that is there makes no layer', async () => {
  expect(await copied([{ path: './' }], { to: '/app' })).toEqual([])
})

test('a relative destination is below the working directory', async () => {
  await using at = await buildBench()
  const image = await at.build(baseOf(at), [
    { kind: 'workdir', path: '/bin' },
    { kind: 'workdir', path: 'deep/er' },
    { kind: 'copy', blob: at.tar([{ path: 'x' }]), to: 'sub' },
  ])
  expect(image.config.workdir).toBe('/bin/deep/er')
  expect((await at.layers(image)).at(-1)?.at(-1)).toMatch(/^usr\/bin\/deep\/er\/sub\/x file/)
})

const stage = [
  { path: 'out/a.so', content: 'A', mode: 0o755, uid: 9 },
  { path: 'out/b.so', content: 'B' },
  { path: 'out/b', type: '1', linkPath: 'out/b.so' },
  { path: 'out/deep/c', content: 'C' },
  { path: 'current', type: '2', linkPath: 'out' },
]

test.each([
  [['/out/a.so'], '/lib', ['lib file 755 9:0 A']],
  [['/out/a.so'], '/lib/', ['lib/a.so file 755 9:0 A']],
  [['/out/a.so'], '/app', ['app/a.so file 755 9:0 A']],
  [['/out/*.so'], '/lib', ['lib/a.so file 755 9:0 A', 'lib/b.so file 644 0:0 B']],
  [['/current/deep'], '/bin', ['usr/bin/c file 644 0:0 C']],
  [['/out/b', 'out/b.so'], '/lib', ['lib/b file 644 0:0 B', 'lib/b.so file 644 0:0 B']],
  [['/*/deep'], '/x/', ['x/c file 644 0:0 C']],
])('%j of another image goes to %s', async (paths, to, expected) => {
  await using at = await buildBench()
  const source = { kind: 'tar', blob: at.tar(stage) } as const
  const image = await at.build(baseOf(at), [{ kind: 'copyFrom', source, paths, to }])
  const lines = (await at.layers(image)).flat().filter((line) => line.includes(' file '))
  expect(lines.map((line) => line.replace(/ \d+ (\S+)$/, ' $1'))).toEqual(expected)
  expect(at.machines).toEqual([])
})

test('a path that the other image has not is named', async () => {
  await using at = await buildBench()
  const source = { kind: 'tar', blob: at.tar(stage) } as const
  const step = { kind: 'copyFrom', source, paths: ['/out/*.dll'], to: '/' } as const
  await expect(at.build(baseOf(at), [{ ...step, paths: [...step.paths] }])).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringContaining('nothing at "/out/*.dll"'),
  })
})

test('the same copy over the same image is the same bytes', async () => {
  const layers = []
  for (const uid of [1, 2]) {
    await using at = await buildBench()
    const blob = at.tar([{ path: 'x', content: 'X', uid }])
    const step = { kind: 'copy', blob, to: '/', owner: '0' } as const
    layers.push((await at.build(baseOf(at), [step])).layers[1]?.digest)
  }
  expect(layers[0]).toBe(layers[1])
})

test.each([
  [
    'as they were',
    {},
    ['b/out/x directory 700 5:6', 'b/out/x/l symlink 777 7:8', 'b/out/x/s file 600 5:6'],
  ],
  [
    'those that are given',
    { owner: '9:10' },
    ['b/out/x directory 700 9:10', 'b/out/x/l symlink 777 9:10', 'b/out/x/s file 600 9:10'],
  ],
])('owners of a copy out of another image are %s', async (_name, options, expected) => {
  await using at = await buildBench()
  const members = [
    { path: 'o/', uid: 3, mode: 0o700 },
    { path: 'o/x/', uid: 5, gid: 6, mode: 0o700 },
    { path: 'o/x/s', content: 's', uid: 5, gid: 6, mode: 0o600 },
    { path: 'o/x/l', type: '2', linkPath: 's', uid: 7, gid: 8 },
  ]
  const source = { kind: 'tar', blob: at.tar(members) } as const
  const step = { kind: 'copyFrom', source, paths: ['/o'], to: '/b/out', ...options } as const
  const image = await at.build(baseOf(at), [{ ...step, paths: [...step.paths] }])
  const [lines = []] = await at.layers(image)
  const made = 'owner' in options ? '9:10' : '0:0'
  expect(lines.map((line) => line.split(' ').slice(0, 4).join(' '))).toEqual([
    `b directory 755 ${made}`,
    `b/out directory 755 ${made}`,
    ...expected,
  ])
})
