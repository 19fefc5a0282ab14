import { posix } from 'node:path'
import { Readable } from 'node:stream'
import { extract, pack } from 'tar-stream'
import type { GuestBytes, GuestTars, GuestText } from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import { collect } from './execs.ts'
import { streamOf } from './file-calls.ts'
import { type FakeFiles, type FakeNode, node, text } from './files.ts'

/** The tar requests of a guest over the files of its worlds. */
export function tarCalls(filesOf: (world: string) => FakeFiles): GuestTars {
  return {
    in: async (world, path, tar, options) => unpack(filesOf(world), path, tar, options ?? {}),
    out: (world, path) => {
      const files = filesOf(world)
      const root = files.get(path)
      const entries: (readonly [string, FakeNode])[] =
        root.kind === 'directory' ? files.below(path) : [[text(path), root]]
      const base = root.kind === 'directory' ? text(path) : posix.dirname(text(path))
      return streamOf(packed(base, entries), { entries: entries.length })
    },
    difference: (world, options = {}) => {
      const changes = filesOf(world).changes((options.exclude ?? []).map(text))
      return streamOf(packed('/', changes), { entries: changes.length })
    },
  }
}

async function unpack(
  files: FakeFiles,
  path: GuestText,
  tar: GuestBytes,
  owner: { readonly uid?: number; readonly gid?: number },
): Promise<{ entries: number }> {
  files.makeDirectory(path, true)
  const extraction = extract()
  Readable.from([await collect(tar)]).pipe(extraction)
  let entries = 0
  for await (const entry of extraction) {
    const { name, type, mode, linkname, uid, gid } = entry.header
    const target = posix.join(text(path), name)
    if (name.startsWith('/') || !`${target}/`.startsWith(`${posix.resolve(text(path))}/`)) {
      throw new GuestError('invalid', `${name} leaves ${text(path)}`)
    }
    const who = { uid: owner.uid ?? uid ?? 0, gid: owner.gid ?? gid ?? 0 }
    const bytes = await collect(entry as AsyncIterable<Uint8Array>)
    entries++
    if (type === 'directory') files.makeDirectory(target, true, mode)
    else if (type === 'file') files.set(target, node('file', bytes, mode ?? 0o644, who))
    else if (type === 'symlink') {
      files.set(target, node('symlink', Buffer.from(linkname ?? ''), 0o777, who))
    } else throw new GuestError('invalid', `${name}: ${type} is refused`)
  }
  return { entries }
}

function packed(
  base: string,
  entries: readonly (readonly [string, FakeNode | undefined])[],
): AsyncIterable<Uint8Array> {
  const tar = pack()
  for (const [path, found] of entries) {
    if (!found) {
      tar.entry({ name: posix.relative(base, path), type: 'character-device', mode: 0 })
      continue
    }
    const { kind, bytes, mode, uid, gid, mtimeMs } = found
    const header = { name: posix.relative(base, path), mode, uid, gid, mtime: new Date(mtimeMs) }
    if (kind === 'file') tar.entry(header, Buffer.from(bytes))
    else if (kind === 'directory') tar.entry({ ...header, type: 'directory' })
    else tar.entry({ ...header, type: 'symlink', linkname: text(bytes) })
  }
  tar.finalize()
  return tar as unknown as AsyncIterable<Uint8Array>
}
