import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { Lent } from './lend.ts'
import type { PutFilesRequest } from './port.ts'

const AT_ONCE = 4

/** Writes files whose contents are blobs, a few at once. */
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
