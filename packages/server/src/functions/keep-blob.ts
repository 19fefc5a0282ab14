import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { formatSize, SandlotError } from '@sandlot/protocol'
import { FUNCTION_LIMITS } from './limits.ts'
import { bundlePin } from './names.ts'

/** Keeps a content under a name. @throws SandlotError `blob_unknown` */
export async function keepBlob({ blobs }: Engine, name: string, blob: string): Promise<void> {
  try {
    await blobs.pin(name, blob as Digest)
  } catch (error) {
    if (!isEngineError(error, 'not_found')) throw error
    throw new SandlotError('blob_unknown', `the content ${blob} is not here`, { cause: error })
  }
}

/** In place of the one that the queue had before. */
export async function keepBundle(engine: Engine, uid: string, bundle: string): Promise<void> {
  const found = await engine.blobs.has(bundle as Digest, { renew: true })
  if (found && found.sizeBytes > FUNCTION_LIMITS.bundleBytes) {
    const [is, most] = [found.sizeBytes, FUNCTION_LIMITS.bundleBytes].map(formatSize)
    throw new SandlotError(
      'too_large',
      `the bundle of the function has ${is}; the most is ${most}`,
      {
        hint: 'Put large data into the image, or pass it with the input.',
      },
    )
  }
  await keepBlob(engine, bundlePin(uid), bundle)
}
