import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { listErofsContents, type TarMember, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { DirectoryInode, Inode } from './erofs/inode.ts'
import { readContent, readErofsTree } from './erofs/read-tree.ts'
import type { ImageLayer } from './image.ts'
import { ImageTrees } from './image-trees.ts'
import { joinedLayers } from './joined-layers.ts'
import { writeTarLayer } from './tar-layer.ts'
import { mergedOver } from './whiteouts.ts'

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function layersOf(directory: string, tars: TarMember[][]): Promise<ImageLayer[]> {
  const layers: ImageLayer[] = []
  let below: DirectoryInode | undefined
  for (const [index, members] of tars.entries()) {
    const path = join(directory, `${index}`)
    const { root, digest, sizeBytes } = await writeTarLayer(once(tarArchive(members)), {
      path,
      ociWhiteouts: true,
      onLog: () => {},
      ...(below && { below }),
    })
    layers.push({ path, digest, sizeBytes })
    below = mergedOver(root, below)
  }
  return layers
}

/** What is seen, with contents. */
async function view(layers: readonly ImageLayer[]): Promise<string[]> {
  let tree: DirectoryInode | undefined
  for (const { path } of layers) tree = mergedOver(await readErofsTree(path), tree)
  const lines: string[] = []
  const visit = async (inode: Inode, path: string): Promise<void> => {
    const hash = createHash('sha256')
    if (inode.kind === 'file') for await (const part of readContent(inode)) hash.update(part)
    lines.push(`${path} ${inode.kind} ${inode.mode} ${inode.uid} ${hash.digest('hex').slice(0, 8)}`)
    if (inode.kind !== 'directory') return
    for (const [name, child] of inode.children) await visit(child, `${path}/${name}`)
  }
  if (tree) await visit(tree, '')
  return lines.sort()
}

const tars: TarMember[][] = [
  [
    { path: 'etc/', mode: 0o711, uid: 7 },
    { path: 'etc/a', content: 'A' },
    { path: 'etc/b', content: 'B' },
    { path: 'opt/x/y', content: 'Y' },
    { path: 'keep', content: 'K' },
  ],
  [{ path: 'etc/b', content: 'B2' }, { path: 'opt/x/.wh.y' }, { path: 'new', content: 'N' }],
  [{ path: '.wh.opt' }, { path: 'etc/c', content: 'C' }, { path: '.wh.new' }],
  [
    { path: 'opt/z', content: 'Z' },
    { path: 'etc/e', content: 'E' },
    { path: 'etc/d', type: '1', linkPath: 'etc/e' },
  ],
]

test.each([1, 2, 3])('what is seen stays the same when %i layers are left', async (keep) => {
  await using directory = await temporaryDirectory()
  const layers = await layersOf(directory.path, tars)
  const { signal } = new AbortController()
  const path = join(directory.path, 'joined')
  const joined = await joinedLayers(layers, { keep, path, trees: new ImageTrees(), signal })
  expect(joined).toHaveLength(keep)
  expect(joined.slice(0, keep - 1)).toEqual(layers.slice(0, keep - 1))
  expect(await view(joined)).toEqual(await view(layers))
})

test('a directory that was deleted and made again hides what lies below', async () => {
  await using directory = await temporaryDirectory()
  const layers = await layersOf(directory.path, tars)
  const { signal } = new AbortController()
  const path = join(directory.path, 'joined')
  await joinedLayers(layers, { keep: 2, path, trees: new ImageTrees(), signal })
  expect(await listErofsContents(path)).toEqual([
    'etc directory',
    'etc/b file B2',
    'etc/c file C',
    'etc/d file E',
    'etc/e file E',
    'opt directory',
    'opt/x whiteout 0',
    'opt/z file Z',
  ])
})
