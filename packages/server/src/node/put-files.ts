import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import type { Lent } from './lend.ts'
import type { PutFilesRequest } from './port.ts'

const AT_ONCE = 4

/**
 * Writes files whose contents are blobs, a few at once, in the place of whatever is there: an episode must not keep its tests from
 * being brought by what it leaves in their way.
 */
export async function putFiles(
  lent: Lent,
  request: PutFilesRequest,
  options: { readonly engine: Engine; readonly signal: AbortSignal },
): Promise<void> {
  const files = request.files.values()
  const work = async () => {
    for (const file of files) await putFile(lent, request.world ?? 'main', file, options)
  }
  const failed = await Promise.allSettled(Array.from({ length: AT_ONCE }, work))
  for (const each of failed) if (each.status === 'rejected') throw await lent.explain(each.reason)
}

async function putFile(
  lent: Lent,
  world: string,
  file: PutFilesRequest['files'][number],
  { engine, signal }: { readonly engine: Engine; readonly signal: AbortSignal },
): Promise<void> {
  const path = file.path
  try {
    const { body } = await engine.blobs.open(file.blob as Digest, { signal })
    await makeRoom(lent, world, path, signal)
    const options = { mode: file.mode, parents: true }
    await lent.guest.files.write(world, path, body, options, { signal })
  } catch (error) {
    if (isEngineError(error, 'not_found') || isEngineError(error, 'invalid_argument')) {
      throw new SandlotError('blob_unknown', `no content ${file.blob} for ${path}`, {
        cause: error,
      })
    }
    throw error
  }
}

async function makeRoom(
  lent: Lent,
  world: string,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const { files } = lent.guest
  const remove = (what: string) =>
    files.remove(world, what, { recursive: true, force: true }, { signal })
  try {
    await remove(path)
  } catch (error) {
    if (!(error instanceof GuestError)) throw error
  }
  for (const directory of directoriesAbove(path)) {
    const kind = await kindOf(lent, world, directory, signal)
    if (kind === 'directory') continue
    await remove(directory)
    return
  }
}

function directoriesAbove(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.slice(0, -1).map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
}

/** Through symlinks; one that leads nowhere has no kind. */
async function kindOf(lent: Lent, world: string, path: string, signal: AbortSignal) {
  try {
    return (await lent.guest.files.stat(world, path, { follow: true }, { signal })).kind
  } catch (error) {
    if (error instanceof GuestError) return undefined
    throw error
  }
}
