import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TarMember, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { writeTarLayer } from '../tar-layer.ts'
import type { DirectoryInode, Inode } from './inode.ts'
import { LayerDamaged, readContent, readErofsTree } from './read-tree.ts'

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function written(directory: string, members: TarMember[]) {
  const path = join(directory, 'layer')
  return { path, ...(await writeTarLayer(once(tarArchive(members)), { path, onLog: () => {} })) }
}

/** Lines of path, metadata and content, with hard links by the first name. */
async function described(root: DirectoryInode): Promise<string[]> {
  const names = new Map<Inode, string>()
  const lines: string[] = []
  const visit = async (inode: Inode, path: string): Promise<void> => {
    const { kind, mode, uid, gid, mtimeSeconds, mtimeNanoseconds } = inode
    const first = names.get(inode)
    const target = inode.kind === 'symlink' ? inode.target : ''
    lines.push(
      [path, first ?? kind, mode, uid, gid, mtimeSeconds, mtimeNanoseconds, target].join(' '),
    )
    names.set(inode, path)
    if (inode.kind !== 'directory') return
    for (const name of [...inode.children.keys()].sort()) {
      await visit(inode.children.get(name) as Inode, `${path}/${name}`)
    }
  }
  await visit(root, '')
  return lines
}

const members: TarMember[] = [
  { path: 'a', content: 'A'.repeat(5000), mode: 0o6755, uid: 70_000, gid: 4_000_000_000 },
  { path: 'b', type: '1', linkPath: 'a' },
  { path: 'empty' },
  { path: 'link', type: '2', linkPath: '../somewhere/else' },
  { path: 'long', type: '2', linkPath: 'x/'.repeat(2000) },
  { path: 'fifo', type: '6' },
  { path: 'gone', type: '3', device: [0, 0] },
  { path: 'odd\xff\xfe', content: 'odd', pax: { mtime: '12.000000345' } },
  { path: 'd/', mode: 0o1777 },
  ...Array.from({ length: 2000 }, (_, n) => ({ path: `d/${n}-${'n'.repeat(n % 200)}` })),
]

test('a tree is read back as it was written', async () => {
  await using directory = await temporaryDirectory()
  const { path, root } = await written(directory.path, members)
  expect(await described(await readErofsTree(path))).toEqual(await described(root))
})

test('contents are read from their layer', async () => {
  await using directory = await temporaryDirectory()
  const { path } = await written(directory.path, members)
  const tree = await readErofsTree(path)
  const text = async (name: string) => {
    const inode = tree.children.get(name)
    if (inode?.kind !== 'file') throw new Error(`no file ${name}`)
    const parts: Uint8Array[] = []
    for await (const part of readContent(inode)) parts.push(part)
    return Buffer.concat(parts).toString()
  }
  expect(await text('b')).toBe('A'.repeat(5000))
  expect(await text('empty')).toBe('')
  expect(await text('odd\xff\xfe')).toBe('odd')
})

test('a file that is no layer, or one that was cut off, is damaged', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'other')
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(8192, 1)]) {
    await writeFile(path, bytes)
    await expect(readErofsTree(path)).rejects.toThrow(LayerDamaged)
  }
})
