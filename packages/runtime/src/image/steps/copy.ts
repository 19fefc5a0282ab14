/** The layers of copying steps. They need no sandbox: a tar or another image's tree is put over the image's in memory. */
import { decompressed, verifiedBlob } from '../blob-stream.ts'
import { ErofsImageFile } from '../erofs/image-file.ts'
import type { DirectoryInode, Inode } from '../erofs/inode.ts'
import type { Image } from '../image.ts'
import { sourceInvalid } from '../image-error.ts'
import { splitPath } from '../layer-tree.ts'
import { imageLimits } from '../limits.ts'
import { TarError } from '../tar/header.ts'
import { printable, readTar, type TarEntry } from '../tar/reader.ts'
import { toInode, type WrittenLayer } from '../tar-layer.ts'
import { finishTree, writeTreeLayer } from '../tree-layer.ts'
import { findAccount } from './account.ts'
import type { StepContext, StepOf } from './apply.ts'
import { withContent } from './copied-content.ts'
import { CopiedTree, putContent } from './copied-tree.ts'
import { absolutePath, bytesOf, lookIn, textOf, walk } from './tree-path.ts'
import { hasWildcards, matchesName } from './wildcards.ts'

export async function copyLayer(
  step: StepOf<'copy'>,
  parent: Image,
  context: StepContext,
): Promise<WrittenLayer | undefined> {
  const tree = await copiedTree(step, parent, context)
  const to = destination(step.to, tree, parent)
  await using file = await ErofsImageFile.create(context.layerPath, imageLimits.layerBytesMax)
  const tar = readTar(decompressed(verifiedBlob(step.blob, context.openBlob, context.signal)))
  let count = 0
  for await (const entry of step.content === undefined ? tar : withContent(tar, step.content)) {
    count += 1
    if (step.file && (count > 1 || entry.type !== 'file')) throw notOneFile()
    await putEntry(entry, { tree, file, to: step.file ? fileAt(tree, to, entry) : to, step })
  }
  if (step.file && count === 0) throw notOneFile()
  if (!step.file) tree.makeDirectory(to)
  return tree.isEmpty ? undefined : await finishTree(file, tree.settled(), context.signal)
}

export async function copyFromLayer(
  step: StepOf<'copyFrom'>,
  parent: Image,
  context: StepContext,
): Promise<WrittenLayer | undefined> {
  const source = await context.sourceImage(step.source)
  const from = await context.trees.read(source.layers)
  const tree = await copiedTree(step, parent, context)
  const to = destination(step.to, tree, parent)
  const found = step.paths.flatMap((path) => matches(from, path))
  const isDirectory = to.endsWith('/') || found.length > 1 || isDirectoryAt(tree, to)
  for (const { inode, name } of found) {
    const isFile = inode.kind !== 'directory'
    putContent(tree, isFile && isDirectory ? `${to}/${name}` : to, inode)
  }
  return tree.isEmpty
    ? undefined
    : await writeTreeLayer(context.layerPath, tree.settled(), context.signal)
}

async function copiedTree(
  { owner, mode }: { readonly owner?: string | undefined; readonly mode?: number | undefined },
  parent: Image,
  context: StepContext,
): Promise<CopiedTree> {
  const below = await context.trees.read(parent.layers)
  const account = owner === undefined ? undefined : await findAccount(below, owner)
  return new CopiedTree({ below, account, mode })
}

/** What every sandbox has of its own, whatever its image has there. */
const OWN: ReadonlySet<string | undefined> = new Set(['dev', 'proc', 'sys'])

function destination(to: string, tree: CopiedTree, { config }: Image): string {
  const path = bytesOf(absolutePath(to, config.workdir))
  const { names } = tree.find(path)
  if (!OWN.has(names[0])) return path
  throw sourceInvalid(
    `${textOf(names)} can't be copied to: each sandbox has a /${names[0]} of its own, and what an image has there is never seen.`,
    'Copy to another directory.',
  )
}

interface Putting {
  readonly tree: CopiedTree
  readonly file: ErofsImageFile
  /** The directory; with `file` the path of the file. */
  readonly to: string
  readonly step: StepOf<'copy'>
}

async function putEntry(entry: TarEntry, { tree, file, to, step }: Putting): Promise<void> {
  const names = splitPath(entry.path)
  const path = step.file ? to : [to, ...names].join('/')
  if (entry.type === 'link') {
    tree.link(path, [to, ...splitPath(entry.linkPath)].join('/'))
    return
  }
  if (entry.type === 'characterDevice' || entry.type === 'blockDevice') {
    throw new TarError(`device: ${printable(entry.path)}`)
  }
  const inode = await toInode(entry, file)
  if (!inode) return
  if (inode.kind === 'directory') tree.putDirectory(path, inode)
  else if (names.length > 0) tree.put(path, inode)
  else throw new TarError('an entry without a name')
}

function fileAt(tree: CopiedTree, to: string, entry: TarEntry): string {
  const name = splitPath(entry.path).at(-1) ?? ''
  return to.endsWith('/') || isDirectoryAt(tree, to) ? `${to}/${name}` : to
}

function isDirectoryAt(tree: CopiedTree, path: string): boolean {
  return tree.find(path).inode?.kind === 'directory'
}

function notOneFile(): Error {
  return sourceInvalid(
    'A copy of one file has a tar that holds something else.',
    'Pack exactly one regular file.',
  )
}

interface Match {
  /** Last name of the path that led here. */
  readonly name: string
  readonly inode: Inode
}

/** What a path with or without wildcards names. Nothing at all is an error. */
function matches(root: DirectoryInode, path: string): Match[] {
  const look = lookIn(root)
  let paths = ['']
  for (const part of bytesOf(path).split('/')) {
    if (part === '' || part === '.') continue
    paths = paths.flatMap((before) => expanded(root, before, part))
  }
  const found = paths.flatMap((each) => {
    const { names, inode } = walk(look, each, { last: 'follow' })
    const name = each.slice(each.lastIndexOf('/') + 1)
    return inode ? [{ name: name === '..' ? (names.at(-1) ?? '') : name, inode }] : []
  })
  if (found.length > 0) return found
  throw sourceInvalid(
    `The image that is copied from has nothing at ${JSON.stringify(path.slice(0, 200))}.`,
    'Look what it has: start a sandbox from it.',
  )
}

function expanded(root: DirectoryInode, before: string, part: string): string[] {
  if (!hasWildcards(part)) return [`${before}/${part}`]
  const { inode } = walk(lookIn(root), before, { last: 'follow' })
  if (inode?.kind !== 'directory') return []
  const names = [...inode.children.keys()].filter((name) => matchesName(part, name))
  return names.sort().map((name) => `${before}/${name}`)
}
