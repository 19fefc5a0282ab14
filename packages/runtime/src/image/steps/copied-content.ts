/** Whether a tar has the content that its step is known by. */
import { createHash, type Hash } from 'node:crypto'
import { copiedEntryLine } from '@sandlot/protocol'
import { sourceInvalid } from '../image-error.ts'
import { splitPath } from '../layer-tree.ts'
import type { TarEntry } from '../tar/reader.ts'

/**
 * The entries of a tar as they are, each to be read whole before the next. Fails at the end with `image_source_invalid` where they are
 * others than the digest says: under its key everybody would get them.
 */
export async function* withContent(
  entries: AsyncIterable<TarEntry>,
  content: string,
): AsyncGenerator<TarEntry> {
  const all = createHash('sha256')
  for await (const entry of entries) {
    const bytes = entry.type === 'file' ? createHash('sha256') : undefined
    yield bytes ? { ...entry, content: hashed(entry.content, bytes) } : entry
    all.update(lineOf(entry, bytes?.digest('hex')))
  }
  const found = `sha256:${all.digest('hex')}`
  if (found === content) return
  throw sourceInvalid(
    `The tar of the step has the content ${found}, and was announced with ${content}.`,
    'Build it again. Where that does not help, the client is of another version than the daemon.',
  )
}

async function* hashed(chunks: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    hash.update(chunk)
    yield chunk
  }
}

function lineOf(entry: TarEntry, sha256: string | undefined): string {
  const { type: kind, path, linkPath, mode, uid, gid, sizeBytes } = entry
  const isLink = kind === 'symlink' || kind === 'link'
  return copiedEntryLine({
    ...{ kind, path: splitPath(path).join('/'), mode, uid, gid },
    ...(isLink ? { target: linkPath } : {}),
    ...(sha256 === undefined ? {} : { sizeBytes, sha256 }),
  })
}
