import { join } from 'node:path'
import { listErofsContents, type TarMember, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { DirectoryInode, Inode } from './erofs/inode.ts'
import { writeTarLayer } from './tar-layer.ts'
import { mergedOver } from './whiteouts.ts'

interface Stack {
  readonly layers: string[][]
  /** What is seen when all layers lie over one another. */
  readonly view: string[]
}

async function stack(...tars: TarMember[][]): Promise<Stack> {
  await using directory = await temporaryDirectory()
  const layers: string[][] = []
  let below: DirectoryInode | undefined
  for (const [index, members] of tars.entries()) {
    const path = join(directory.path, `${index}.erofs`)
    const layer = await writeTarLayer(chunks(tarArchive(members)), {
      path,
      ociWhiteouts: true,
      onLog: () => {},
      ...(below && { below }),
    })
    layers.push((await listErofsContents(path)).filter((line) => !isMountPoint(line)))
    below = mergedOver(layer.root, below)
  }
  return { layers, view: flat(below).filter((path) => !isMountPoint(path)) }
}

async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function isMountPoint(line: string): boolean {
  return /^(dev|proc|run|sys|tmp)( |$)/.test(line)
}

function flat(inode: Inode | undefined, prefix = ''): string[] {
  if (inode?.kind !== 'directory') return []
  return [...inode.children].flatMap(([name, child]) => [
    `${prefix}${name}`,
    ...flat(child, `${prefix}${name}/`),
  ])
}

const base: TarMember[] = [
  { path: 'etc/', mode: 0o711, uid: 7 },
  { path: 'etc/a', content: 'A' },
  { path: 'etc/b', content: 'B' },
  { path: 'etc/sub/c', content: 'C' },
  { path: 'etc/sub/d', content: 'D' },
  { path: 'keep', content: 'K' },
]

test('a deleted name becomes a whiteout', async () => {
  const { layers, view } = await stack(base, [{ path: 'etc/.wh.a' }, { path: '.wh.keep' }])
  expect(layers[1]).toEqual(['etc directory', 'etc/a whiteout 0', 'keep whiteout 0'])
  expect(view.sort()).toEqual(['etc', 'etc/b', 'etc/sub', 'etc/sub/c', 'etc/sub/d'])
})

test('a whiteout of nothing is dropped, at the bottom too', async () => {
  const { layers } = await stack([{ path: '.wh.x' }, ...base], [{ path: 'etc/.wh.none' }])
  expect(layers[0]).not.toContain('x whiteout 0')
  expect(layers[1]).toEqual(['etc directory'])
})

test('an opaque directory hides every name below it that it lacks', async () => {
  const { layers, view } = await stack(base, [
    { path: 'etc/' },
    { path: 'etc/.wh..wh..opq' },
    { path: 'etc/b', content: 'new' },
    { path: 'etc/e', content: 'E' },
  ])
  expect(layers[1]).toEqual([
    'etc directory',
    'etc/a whiteout 0',
    'etc/b file new',
    'etc/e file E',
    'etc/sub whiteout 0',
  ])
  expect(view.sort()).toEqual(['etc', 'etc/b', 'etc/e', 'keep'])
})

test('what an opaque directory has anew is opaque all the way down', async () => {
  const { layers, view } = await stack(base, [
    { path: 'etc/sub/c', content: 'C2' },
    { path: 'etc/.wh..wh..opq' },
  ])
  expect(layers[1]).toEqual([
    'etc directory',
    'etc/a whiteout 0',
    'etc/b whiteout 0',
    'etc/sub directory',
    'etc/sub/c file C2',
    'etc/sub/d whiteout 0',
  ])
  expect(view.sort()).toEqual(['etc', 'etc/sub', 'etc/sub/c', 'keep'])
})

test('a directory that is deleted and made again does not show its old content', async () => {
  const { view } = await stack(base, [{ path: '.wh.etc' }, { path: 'etc/new', content: 'N' }])
  expect(view.sort()).toEqual(['etc', 'etc/new', 'keep'])
})

test('a whiteout concerns lower layers alone, wherever it stands in its own', async () => {
  const { layers } = await stack(base, [{ path: 'keep', content: 'K2' }, { path: '.wh.keep' }])
  expect(layers[1]).toEqual(['keep file K2'])
})

test('names deleted in one layer and made in a later one are seen again, without the old content', async () => {
  const { layers, view } = await stack(
    base,
    [{ path: '.wh.etc' }],
    [{ path: 'etc/new', content: 'N' }],
  )
  expect(layers[2]).toEqual(['etc directory', 'etc/new file N'])
  expect(view.sort()).toEqual(['etc', 'etc/new', 'keep'])
})

test('a directory that only leads to something looks as it did below', async () => {
  await using directory = await temporaryDirectory()
  const bottom = await writeTarLayer(chunks(tarArchive(base)), {
    path: join(directory.path, '0'),
    onLog: () => {},
  })
  const upper = await writeTarLayer(chunks(tarArchive([{ path: 'etc/new' }])), {
    path: join(directory.path, '1'),
    onLog: () => {},
    below: bottom.root,
  })
  expect(upper.root.children.get('etc')).toMatchObject({ mode: 0o711, uid: 7 })
})

test('marks of other union file systems are ignored', async () => {
  const { layers } = await stack(base, [
    { path: '.wh..wh.plnk/' },
    { path: '.wh..wh.aufs' },
    { path: '.wh.' },
  ])
  expect(layers[1]).toEqual([])
})
