/** Files of this machine as the tar of one copying step. The same content is the same tar: sorted, owned by root, without its times. */
import { lstat, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import { type LocalEntry, localTar, namesIn, packEntry } from '../sandbox/local-tar.ts'
import { localStat } from '../sandbox/tree-upload.ts'
import { ignoreOf, takesBack } from './ignore.ts'
import type { CopiedTar, LocalCopy } from './local-step.ts'

/** Something below a directory, with its name there. */
export interface ListedFile extends LocalEntry {
  readonly kind: 'directory' | 'link' | 'file'
}

const ENTRIES_MAX = 1_000_000
/** Archives refuse times before 1980, and a build must not depend on when its files were checked out. */
const TIME = new Date('2000-01-01T00:00:00Z')

/** What `copy(local, remote)` copies. */
export function localCopy(
  local: string,
  remote: string,
  exclude: readonly string[] = [],
): LocalCopy {
  return {
    from: local,
    tar: async () => {
      const found = await localStat(local)
      if (found.isDirectory()) return tarOfFiles(await filesBelow(local, exclude), false)
      // A link is what it leads to, as for Docker; those within a directory stay links.
      const path = await realpath(local)
      return tarOfFiles([{ path, name: basename(local) }], !remote.endsWith('/'))
    },
  }
}

/** These files and no others, under their names; a directory is an entry alone. `file`: see the protocol's `copy`. */
export function tarOfFiles(files: readonly LocalEntry[], file: boolean): CopiedTar {
  const bytes = localTar(files[0]?.path ?? '', async (pack) => {
    for (const { path, name } of files) {
      if ((await packEntry(pack, { path, name, mtime: TIME })) !== 'other') continue
      throw new SandlotError('file_not_regular', `${path} is a socket, a device or a FIFO`, {
        hint: 'Leave it out: a .dockerignore, or `exclude`.',
      })
    }
  })
  return { bytes, file }
}

/** Texts as files. */
export function tarOfTexts(
  texts: readonly { readonly name: string; readonly text: string }[],
  file: boolean,
): CopiedTar {
  const bytes = localTar('', async (pack) => {
    for (const { name, text } of texts) {
      pack.entry({ name, mode: 0o644, mtime: TIME, uid: 0, gid: 0 }, text)
    }
  })
  return { bytes, file }
}

/** Everything below a directory that is not ignored, sorted; directories before what is in them. */
export async function filesBelow(
  root: string,
  exclude: readonly string[] = [],
  entriesMax = ENTRIES_MAX,
): Promise<readonly ListedFile[]> {
  const ignored = ignoreOf(exclude)
  // What is taken back may lie in a directory that is left out.
  const looksEverywhere = takesBack(exclude)
  const files: ListedFile[] = []
  const waiting = ['']
  for (let below = waiting.pop(); below !== undefined; below = waiting.pop()) {
    for (const name of await namesIn(join(root, below))) {
      const relative = below === '' ? name : `${below}/${name}`
      const path = join(root, relative)
      const out = ignored(relative)
      if (out && !looksEverywhere) continue
      const found = await lstat(path)
      const kind = found.isDirectory() ? 'directory' : found.isSymbolicLink() ? 'link' : 'file'
      if (!out) files.push({ path, name: relative, kind })
      if (kind === 'directory') waiting.push(relative)
      if (files.length > entriesMax) throw tooMany(root, entriesMax)
    }
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function tooMany(root: string, entriesMax: number): SandlotError {
  return new SandlotError('too_large', `${root} has more than ${entriesMax} entries`, {
    hint: 'Leave out what the image does not need: a .dockerignore, or `exclude`.',
  })
}
