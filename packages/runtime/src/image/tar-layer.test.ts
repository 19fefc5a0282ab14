import { join } from 'node:path'
import { listErofs, type TarMember, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { run } from '../process/run.ts'
import { TarError } from './tar/header.ts'
import { type TarLayerOptions, type WrittenTarLayer, writeTarLayer } from './tar-layer.ts'

async function* stream(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function write(
  directory: string,
  members: readonly TarMember[],
  options: Partial<TarLayerOptions> = {},
): Promise<WrittenTarLayer & { path: string }> {
  const path = join(directory, `${Math.random()}.erofs`)
  const layer = await writeTarLayer(stream(tarArchive(members)), {
    path,
    onLog: () => {},
    ...options,
  })
  return { ...layer, path }
}

const MOUNT_POINTS = ['dev', 'proc', 'run', 'sys', 'tmp']

test('extended attributes are told by path, since no layer has them', async () => {
  await using directory = await temporaryDirectory()
  const log: string[] = []
  const { warnings } = await write(
    directory.path,
    [
      { path: './usr/bin/ping', pax: { 'SCHILY.xattr.security.capability': '\x01\x00' } },
      { path: 'plain' },
      { path: 'data/', pax: { 'LIBARCHIVE.xattr.user.a=b': 'YQ', 'SCHILY.xattr.user.\u00ff': '' } },
    ],
    { onLog: (line) => log.push(line) },
  )
  expect(warnings).toEqual([
    'extended attributes are not kept in layers: "/usr/bin/ping" (security.capability)',
    'extended attributes are not kept in layers: "/data" (user.a, user.\\xff)',
  ])
  expect(log).toEqual(warnings)
  const many = Array.from({ length: 25 }, (_, n) => ({
    ...{ path: `${n}`, pax: { 'SCHILY.xattr.user.x': '' } },
  }))
  const told = (await write(directory.path, many)).warnings
  expect(told).toHaveLength(21)
  expect(told.at(-1)).toBe('… and of 5 more files')
})

test('a layer holds what the tar holds', async () => {
  await using directory = await temporaryDirectory()
  const { path } = await write(directory.path, [
    { path: './', mode: 0o755 },
    { path: 'bin/', mode: 0o750, uid: 70_000, gid: 70_001 },
    { path: 'bin/odd\xff\n', content: 'odd' },
    { path: 'bin/again', type: '1', linkPath: 'bin/odd\xff\n' },
    { path: 'bin/large', content: 'y'.repeat(9000), mode: 0o700 },
    { path: 'bin/block', content: 'z'.repeat(4096) },
    { path: 'bin/empty' },
    { path: 'to', type: '2', linkPath: '/bin/large' },
    { path: 'long', type: '2', linkPath: '/x'.repeat(2040) },
    { path: 'pipe', type: '6' },
    { path: 'tmp/', mode: 0o700 },
    { path: 'dev/console', type: '3', device: [5, 1] },
  ])
  const lines = await listErofs(path)
  expect(lines).toEqual([
    'bin directory 750 70000:70001 1700000000',
    'bin/again file 644 0:0 1700000000 odd',
    expect.stringMatching(/^bin\/block file 644 0:0 1700000000 4096 bytes /),
    'bin/empty file 644 0:0 1700000000 ',
    expect.stringMatching(/^bin\/large file 700 0:0 1700000000 9000 bytes /),
    'bin/odd\xff\n file 644 0:0 1700000000 odd',
    'dev directory 755 0:0 0',
    `long symlink 777 0:0 1700000000 ${'/x'.repeat(2040)}`,
    'pipe fifo 644 0:0 1700000000',
    'proc directory 555 0:0 0',
    'run directory 755 0:0 0',
    'sys directory 555 0:0 0',
    'tmp directory 700 0:0 1700000000',
    'to symlink 777 0:0 1700000000 /bin/large',
  ])
})

test('directories of many blocks are whole and sorted', async () => {
  await using directory = await temporaryDirectory()
  const names = Array.from({ length: 1500 }, (_, index) => `${'n'.repeat(index % 250)}-${index}`)
  const { path } = await write(
    directory.path,
    names.map((name) => ({ path: `big/${name}`, content: name })),
  )
  const lines = await listErofs(path)
  expect(lines.filter((line) => line.startsWith('big/'))).toHaveLength(1500)
  const some = names[1234] ?? ''
  const { stdout } = await run('dump.erofs', [`--path=/big/${some}`, path], { timeoutMs: 10_000 })
  expect(stdout).toContain(`Size: ${some.length} `)
})

test('what is inlined behind an inode never crosses a block', async () => {
  await using directory = await temporaryDirectory()
  const targets = Array.from({ length: 100 }, (_, index) => 't'.repeat(1 + index * 37))
  const { path } = await write(
    directory.path,
    targets.map((linkPath, index) => ({ path: `${index}`, type: '2', linkPath })),
  )
  const links = (await listErofs(path)).filter((line) => line.includes(' symlink '))
  expect(new Set(links.map((line) => line.split(' ').at(-1)))).toEqual(new Set(targets))
})

test('hard links share an inode', async () => {
  await using directory = await temporaryDirectory()
  const { path } = await write(directory.path, [
    { path: 'su', content: 'x' },
    { path: 'su2', type: '1', linkPath: './su' },
  ])
  const dump = async (name: string): Promise<string> =>
    (await run('dump.erofs', [`--path=${name}`, path], { timeoutMs: 10_000 })).stdout
  expect(await dump('/su')).toMatch(/Links: 2/)
  const nid = (text: string): string | undefined => /NID: (\d+)/.exec(text)?.[1]
  expect(nid(await dump('/su2'))).toBe(nid(await dump('/su')))
})

test('the same tree gives the same bytes', async () => {
  await using directory = await temporaryDirectory()
  const members = [{ path: 'a/b', content: 'c' }, { path: 'd' }]
  const [one, two] = [await write(directory.path, members), await write(directory.path, members)]
  expect(two.digest).toBe(one.digest)
})

test('times of the build itself become the latest time before it', async () => {
  await using directory = await temporaryDirectory()
  const { path } = await write(
    directory.path,
    [
      { path: 'old', mtimeSeconds: 1000 },
      { path: 'older', mtimeSeconds: 500 },
      { path: 'made', mtimeSeconds: 5000 },
    ],
    { volatileAfterSeconds: 2000 },
  )
  const lines = (await listErofs(path)).filter((line) => line.includes(' file '))
  expect(lines).toEqual([
    'made file 644 0:0 1000 ',
    'old file 644 0:0 1000 ',
    'older file 644 0:0 500 ',
  ])
})

test('a directory of the client belongs to root', async () => {
  await using directory = await temporaryDirectory()
  const { path } = await write(directory.path, [{ path: 'a', uid: 1000, gid: 1000 }], {
    allRoot: true,
  })
  expect((await listErofs(path))[0]).toBe('a file 644 0:0 1700000000 ')
})

test('the mount points are added only at the bottom', async () => {
  await using directory = await temporaryDirectory()
  const bottom = await write(directory.path, [])
  expect([...bottom.root.children.keys()].sort()).toEqual(MOUNT_POINTS)
  const upper = await write(directory.path, [], { below: bottom.root })
  expect([...upper.root.children.keys()]).toEqual([])
})

test.each<[string, TarMember[]]>([
  ['leads upwards', [{ path: 'a/../../etc/passwd' }]],
  ['is absolute', [{ path: '/etc/passwd' }]],
  [
    'leads through a symbolic link',
    [{ path: 'a', type: '2', linkPath: '/etc' }, { path: 'a/passwd' }],
  ],
  ['leads through a file', [{ path: 'a' }, { path: 'a/b' }]],
  ['links to nothing', [{ path: 'a', type: '1', linkPath: 'b' }]],
  ['links upwards', [{ path: 'a', type: '1', linkPath: '../b' }]],
  ['links to a directory', [{ path: 'd/' }, { path: 'a', type: '1', linkPath: 'd' }]],
  ['is a block device', [{ path: 'sda', type: '4', device: [8, 0] }]],
  ['is a character device', [{ path: 'mem', type: '3', device: [1, 1] }]],
  ['has a name too long', [{ path: 'n'.repeat(256) }]],
  ['is too deep', [{ path: 'd/'.repeat(600) }]],
  ['is too long', [{ path: 'dddddddddd/'.repeat(400) }]],
  ['has a NUL', [{ path: 'x', pax: { path: 'a\0b' } }]],
  ['replaces the root', [{ path: './', type: '2', linkPath: '/' }]],
  ['is a link without a target', [{ path: 'a', type: '2', linkPath: '' }]],
])('an entry that %s is refused', async (_name, members) => {
  await using directory = await temporaryDirectory()
  await expect(write(directory.path, members)).rejects.toThrow(TarError)
})
