import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Image, openImageStore } from '@sandlot/runtime'
import { cacheDirectory } from './config.ts'

/** What every sandbox of the bench is made from. */
const SUITE = 'bookworm'
const PACKAGES = ['python3']

/** A build that takes longer than it takes to find the image is told. */
const BUILDING_MS = 1_000

const directory = join(cacheDirectory, 'bench-images')

/** The image, built when it isn't in the cache yet. */
export async function benchImage(note: (line: string) => void): Promise<Image> {
  await using store = await openImageStore({
    directory,
    openBlob: async (digest) => {
      throw new Error(`the bench has no blobs; ${digest} was asked for`)
    },
  })
  const source = { kind: 'debian' as const, suite: SUITE, packages: PACKAGES }
  const id = setTimeout(() => note('building the image of the sandboxes (once)'), BUILDING_MS)
  try {
    return await store.build(source)
  } finally {
    clearTimeout(id)
  }
}

/** Lets a daemon over this data directory find the image built. */
export async function shareImages(dataDirectory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
  await symlink(directory, join(dataDirectory, 'images'))
}
