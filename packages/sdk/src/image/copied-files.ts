/** Files of this machine as the tar of one copying step: sorted, owned by root, with their times, which are no part of what the step is. */
import { createHash } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type CopiedEntry, copiedEntryLine, SandlotError } from '@sandlot/protocol'
import type { Pack } from 'tar-stream'
import {
  type LocalEntry,
  localTar,
  namesIn,
  packDirectory,
  packEntry,
  packText,
} from '../sandbox/local-tar.ts'
import { localStat } from '../sandbox/tree-upload.ts'
import { ignoreOf, takesBack } from './ignore.ts'
import type { CopiedTar, LocalCopy } from './local-step.ts'

/** Something below a directory, with its name there. */
export interface ListedFile extends LocalEntry {
  readonly kind: 'directory' | 'link' | 'file'
}

const ENTRIES_MAX = 1_000_000

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
  return copiedTar(files[0]?.path ?? '', file, async function* (pack) {
    for (const each of files) {
      const packed = await packEntry(pack, each, { digest: true })
      if (!packed) {
        throw new SandlotError('file_not_regular', `${each.path} is a socket, a device or a FIFO`, {
          hint: 'Leave it out: a .dockerignore, or `exclude`.',
        })
      }
      yield packed
    }
  })
}

/** Texts as files. */
export function tarOfTexts(
  texts: readonly { readonly name: string; readonly text: string }[],
  file: boolean,
): CopiedTar {
  return copiedTar('', file, async function* (pack) {
    for (const { name, text } of texts) yield packText(pack, name, text)
  })
}

/** Empty directories. */
export function tarOfDirectories(names: readonly string[], mode: number): CopiedTar {
  return copiedTar('', false, async function* (pack) {
    for (const name of names) yield packDirectory(pack, name, mode)
  })
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

/** `fill` packs one entry after the other, and says what each was. */
function copiedTar(
  root: string,
  file: boolean,
  fill: (pack: Pack) => AsyncIterable<CopiedEntry>,
): CopiedTar {
  const hash = createHash('sha256')
  const bytes = localTar(root, async (pack) => {
    for await (const entry of fill(pack)) hash.update(copiedEntryLine(entry))
  })
  return { bytes, file, content: () => `sha256:${hash.copy().digest('hex')}` }
}

function tooMany(root: string, entriesMax: number): SandlotError {
  return new SandlotError('too_large', `${root} has more than ${entriesMax} entries`, {
    hint: 'Leave out what the image does not need: a .dockerignore, or `exclude`.',
  })
}
