import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { entriesOf } from './files.ts'
import type { Leftover } from './leftover.ts'

/**
 * What a daemon's data directory holds of work that was given up: the next start of a daemon there removes it too. With a daemon that
 * lives there nothing is: what is being made is in use.
 */
export async function findStaging(
  dataDirectory: string,
  held: ReadonlyMap<string, number>,
): Promise<readonly Leftover[]> {
  if (held.has(join(realPath(join(dataDirectory, 'engine')), 'lock.db'))) return []
  const [builds, blobs, saved, parts, disks] = await Promise.all([
    entriesOf(join(dataDirectory, 'images', 'tmp'), 'staging'),
    entriesOf(join(dataDirectory, 'engine', 'blobs', 'incoming'), 'staging'),
    entriesOf(join(dataDirectory, 'checkpoints'), 'staging'),
    entriesOf(dataDirectory, 'staging'),
    entriesOf(join(dataDirectory, 'runtime', 'disks'), 'disk'),
  ])
  // Several processes may share images: whoever builds holds a lock of the same name.
  const isBuilt = ({ what }: Leftover) =>
    held.has(join(realPath(dirname(dirname(what))), 'locks', basename(what)))
  return [
    ...builds.filter((each) => !isBuilt(each)),
    ...blobs,
    ...saved.filter(({ what }) => !/^(sb|sn)_[^.]*$/.test(basename(what))),
    ...parts.filter(({ what }) => what.endsWith('.part')),
    ...disks,
  ]
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
