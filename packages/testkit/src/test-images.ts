import { join } from 'node:path'
import { type Image, type ImageStore, openImageStore } from '@sandlot/runtime'
import { cacheDirectory } from './config.ts'

/**
 * Real images for tests, kept between runs in the user's cache: the first use of a source builds it, which takes about twenty
 * seconds, all later ones find it.
 */
export async function openTestImages(): Promise<ImageStore> {
  return await openImageStore({
    directory: testImagesDirectory(),
    openBlob: async (digest) => {
      throw new Error(`test images have no blobs; ${digest} was asked for`)
    },
  })
}

/** Where they are: several processes may have it open as their image store. */
export function testImagesDirectory(): string {
  return join(cacheDirectory, 'test-images')
}

/** Debian bookworm with Python. */
export async function pythonImage(signal?: AbortSignal): Promise<Image> {
  await using store = await openTestImages()
  return await store.build({ kind: 'debian', suite: 'bookworm', packages: ['python3'] }, { signal })
}
