import { posix } from 'node:path'
import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import { type UserIds, userIds } from '../sandboxes/user.ts'
import type { Lent } from './lend.ts'
import type { PutFile, PutFilesRequest } from './port.ts'

const AT_ONCE = 4

/**
 * Writes files, a few at once, in the place of whatever is there: an episode must not keep its tests from
 * being brought by what it leaves in their way. Room is made for all of them before the first is written: what
 * looked to be in the way of one could be the directory of another by then.
 */
export async function putFiles(
  lent: Lent,
  request: PutFilesRequest,
  options: { readonly engine: Engine; readonly signal: AbortSignal },
): Promise<void> {
  const { world = 'main', remove = [], clear = [], of } = request
  const { signal } = options
  try {
    const at: Place = { lent, world, signal }
    await makeRoom(at, remove)
    for (const path of clear) await empty(at, path)
    const paths = request.files.map(({ path }) => path)
    await makeRoom(at, paths)
    const owner = of ? await userIds(lent.guest, world, of.user ?? lent.user, signal) : ROOT
    const files = request.files.values()
    const work = async () => {
      for (const file of files) await putFile(lent, { world, owner }, file, options)
    }
    const all = await Promise.allSettled(Array.from({ length: AT_ONCE }, work))
    for (const each of all) if (each.status === 'rejected') throw each.reason
  } catch (error) {
    throw await lent.explain(error)
  }
}

const ROOT: UserIds = { uid: 0, gid: 0 }

async function putFile(
  lent: Lent,
  { world, owner }: { readonly world: string; readonly owner: UserIds },
  file: PutFile,
  { engine, signal }: { readonly engine: Engine; readonly signal: AbortSignal },
): Promise<void> {
  const { path, mode } = file
  try {
    const body =
      'bytes' in file ? file.bytes : (await engine.blobs.open(file.blob as Digest, { signal })).body
    const options = { ...owner, mode, parents: true }
    await lent.guest.files.write(world, path, body, options, { signal })
  } catch (error) {
    if (isEngineError(error, 'not_found') || isEngineError(error, 'invalid_argument')) {
      throw new SandlotError(
        'blob_unknown',
        `no content ${'blob' in file ? file.blob : ''} for ${path}`,
        {
          cause: error,
        },
      )
    }
    throw error
  }
}

interface Place {
  readonly lent: Lent
  readonly world: string
  readonly signal: AbortSignal
}

/** A directory is emptied and stays what it is; anything else in its place is not one. */
async function empty(at: Place, path: string): Promise<void> {
  const { lent, world, signal } = at
  const { files } = lent.guest
  const kind = await kindOf(at, path, false)
  if (kind !== 'directory') {
    await makeRoom(at, [path])
    await files.makeDirectory(world, path, { parents: true, mode: 0o777 }, { signal })
    return
  }
  const names: Uint8Array[] = []
  for await (const { name } of files.list(world, path, { signal })) names.push(name)
  for (const name of names) {
    const below = Buffer.concat([Buffer.from(`${path}/`), name])
    await files.remove(world, below, { recursive: true, force: true }, { signal })
  }
}

/** Nothing is at these paths then, and nothing but directories above them, as far as there is anything. */
async function makeRoom(at: Place, paths: readonly string[]): Promise<void> {
  const { lent, world, signal } = at
  const remove = (path: string) =>
    lent.guest.files.remove(world, path, { recursive: true, force: true }, { signal })
  const absent = new Set<string>()
  for (const directory of new Set(paths.flatMap(directoriesAbove))) {
    const isBelowNothing = absent.has(posix.dirname(directory))
    if (!isBelowNothing && (await kindOf(at, directory)) === 'directory') continue
    if (!isBelowNothing) await remove(directory)
    absent.add(directory)
  }
  for (const path of paths) {
    if (!absent.has(posix.dirname(path))) await remove(path)
  }
}

function directoriesAbove(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.slice(0, -1).map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
}

/** Through symlinks; one that leads nowhere has no kind. */
async function kindOf({ lent, world, signal }: Place, path: string, follow = true) {
  try {
    return (await lent.guest.files.stat(world, path, { follow }, { signal })).kind
  } catch (error) {
    if (error instanceof GuestError) return undefined
    throw error
  }
}
