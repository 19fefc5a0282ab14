/** Whether this daemon's Node.js runs in an image, told by its files alone. */
import type { DirectoryInode, FileInode } from '../erofs/inode.ts'
import { readContent } from '../erofs/read-tree.ts'
import { ImageError } from '../image-error.ts'
import { lookIn, walk } from '../steps/tree-path.ts'
import { isOlder, type NodeExecutable, type Version } from './executable.ts'

const DIRECTORIES = ['/lib64', '/usr/lib64', '/lib', '/usr/lib', '/usr/local/lib']
/** Debian's name of a machine. */
const TRIPLES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'x86_64-linux-gnu',
  arm64: 'aarch64-linux-gnu',
}
const LIBC_BYTES_MAX = 64 * 2 ** 20

/**
 * The names of the libraries that the image lacks.
 * @throws ImageError `image_unfit` where it has no glibc, or an older one than needed
 */
export async function missingLibraries(
  tree: DirectoryInode,
  node: Pick<NodeExecutable, 'loader' | 'glibc' | 'others'>,
): Promise<readonly string[]> {
  const libc = libraryIn(tree, 'libc.so.6')
  if (!fileAt(tree, node.loader) || !libc) throw withoutGlibc(tree, node)
  const version = await versionOf(libc)
  if (version === undefined || isOlder(version, node.glibc)) {
    throw unfit(`its glibc is ${version?.join('.') ?? 'of an unknown version'}`, node)
  }
  return node.others.map(({ name }) => name).filter((name) => !libraryIn(tree, name))
}

function withoutGlibc(tree: DirectoryInode, node: Pick<NodeExecutable, 'glibc'>): ImageError {
  const lib = lookIn(tree)(['lib']) ?? lookIn(tree)(['usr', 'lib'])
  const names = lib?.kind === 'directory' ? [...lib.children.keys()] : []
  const musl = names.some((name) => name.startsWith('ld-musl-'))
  return unfit(musl ? 'it is built on musl (as Alpine is), not on glibc' : 'it has no glibc', node)
}

function unfit(why: string, { glibc }: Pick<NodeExecutable, 'glibc'>): ImageError {
  return new ImageError('image_unfit', `Functions can't run in this image: ${why}.`, {
    hint: `Start from an image with glibc ${glibc.join('.')} or newer, such as Image.debian('bookworm'), or leave \`from\` out.`,
  })
}

function libraryIn(tree: DirectoryInode, name: string): FileInode | undefined {
  const triple = TRIPLES[process.arch]
  const own = triple === undefined ? [] : [`/lib/${triple}`, `/usr/lib/${triple}`]
  for (const directory of [...own, ...DIRECTORIES]) {
    const found = fileAt(tree, `${directory}/${name}`)
    if (found) return found
  }
  return undefined
}

function fileAt(tree: DirectoryInode, path: string): FileInode | undefined {
  try {
    const { inode } = walk(lookIn(tree), path, { last: 'follow' })
    return inode?.kind === 'file' ? inode : undefined
  } catch {
    // It leads through a file, or in circles: nothing is there for a loader either.
    return undefined
  }
}

async function versionOf(libc: FileInode): Promise<Version | undefined> {
  if (libc.sizeBytes > LIBC_BYTES_MAX) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of readContent(libc)) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('latin1')
  const [, major, minor] = /GNU C Library [^\0\n]*version (\d+)\.(\d+)/.exec(text) ?? []
  return major === undefined ? undefined : [Number(major), Number(minor)]
}
