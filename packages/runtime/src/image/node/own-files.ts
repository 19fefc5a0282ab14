/** Layers of files of this machine: Node.js, and the least that it runs in. They are the same each time: of root, from 1970. */
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { ErofsImageFile } from '../erofs/image-file.ts'
import { newDirectory } from '../erofs/inode.ts'
import { LayerTree } from '../layer-tree.ts'
import { imageLimits } from '../limits.ts'
import { addMountPoints, type WrittenLayer } from '../tar-layer.ts'
import type { NodeExecutable } from './executable.ts'

/** Where Node.js is in every image of a function, and the libraries that the image may lack. */
export const NODE_DIRECTORY = '/.sandlot/node'
export const NODE_PATH = `${NODE_DIRECTORY}/bin/node`
export const LIBRARY_PATH = `${NODE_DIRECTORY}/lib`

interface OwnFile {
  readonly path: string
  readonly mode: number
  /** Of this machine. Absent: a directory. */
  readonly content?: { readonly file: string } | { readonly text: string }
}

/** Node.js alone, to lie over an image. */
export async function writeNodeLayer(
  { path, others }: NodeExecutable,
  to: string,
): Promise<WrittenLayer> {
  const libraries = others.map((each) => ({
    path: `${LIBRARY_PATH}/${each.name}`,
    mode: 0o644,
    content: { file: each.path },
  }))
  return await write(to, [{ path: NODE_PATH, mode: 0o755, content: { file: path } }, ...libraries])
}

/** The least that it runs in, as the bottom of an image: the loader, the C library, the names of users. */
export async function writeBaseLayer(
  { loader, system }: NodeExecutable,
  to: string,
): Promise<WrittenLayer> {
  const texts: Readonly<Record<string, string>> = {
    '/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n',
    '/etc/group': 'root:x:0:\nnogroup:x:65534:\n',
    '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  }
  const files = [loader, ...system.map(({ path }) => path)]
  return await write(
    to,
    [
      ...files.map((file) => ({ path: file, mode: 0o755, content: { file } })),
      ...Object.entries(texts).map(([path, text]) => ({ path, mode: 0o644, content: { text } })),
      { path: '/root', mode: 0o700 },
      { path: '/var/tmp', mode: 0o1777 },
    ],
    { bottom: true },
  )
}

async function write(
  to: string,
  entries: readonly OwnFile[],
  { bottom = false } = {},
): Promise<WrittenLayer> {
  await using image = await ErofsImageFile.create(to, imageLimits.layerBytesMax)
  const tree = new LayerTree()
  const of = { uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }
  for (const { path, mode, content } of entries) {
    const name = path.slice(1)
    if (content === undefined) tree.put(name, newDirectory({ mode }))
    else
      tree.put(name, { kind: 'file', mode, ...of, ...(await image.appendContent(read(content))) })
  }
  if (bottom) addMountPoints(tree.root)
  return { ...(await image.finish(tree.root)), root: tree.root }
}

function read(content: NonNullable<OwnFile['content']>): AsyncIterable<Uint8Array> {
  return 'file' in content
    ? createReadStream(content.file)
    : Readable.from([Buffer.from(content.text)])
}
