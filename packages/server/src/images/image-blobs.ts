import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import type { HasBlob, OpenBlob } from '@sandlot/runtime'

/** The contents that images are built from, out of the engine's blobs. */
export function openImageBlob({ blobs }: Engine): OpenBlob {
  return async (digest, { signal }) => {
    try {
      return (await blobs.open(digest as Digest, { signal })).body
    } catch (error) {
      if (!isEngineError(error, 'not_found')) throw error
      throw new SandlotError('blob_unknown', `no content ${digest}`, { cause: error })
    }
  }
}

export function hasImageBlob({ blobs }: Engine): HasBlob {
  return async (digest, { signal }) =>
    (await blobs.has(digest as Digest, { renew: true, ...(signal ? { signal } : {}) })) !==
    undefined
}
