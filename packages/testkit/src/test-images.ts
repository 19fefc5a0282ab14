import { homedir } from 'node:os'
import { join } from 'node:path'
import { type Image, type ImageStore, openImageStore } from '@sandlot/runtime'

/**
 * Real images for tests, kept between runs in the user's cache: the first use of a source builds it, which takes about twenty
 * seconds, all later ones find it.
 */
export async function openTestImages(): Promise<ImageStore> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return await openImageStore({
    directory: join(cache, 'sandlot', 'test-images'),
    openBlob: async (digest) => {
      throw new Error(`test images have no blobs; ${digest} was asked for`)
    },
  })
}

/** Debian bookworm with Python. */
export async function pythonImage(signal?: AbortSignal): Promise<Image> {
  await using store = await openTestImages()
  return await store.build({ kind: 'debian', suite: 'bookworm', packages: ['python3'] }, { signal })
}
