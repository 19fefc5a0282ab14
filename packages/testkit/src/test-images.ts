import { copyFile, link, mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
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

/** Where they are. Nothing but these images is ever added there: a daemon under test has links to them. */
function testImagesDirectory(): string {
  return join(cacheDirectory, 'test-images')
}

/**
 * An image store at `directory` that has these of the test images, and finds them where their sources are asked for. Their layers are
 * the same files where a link leads to them: nothing writes into a layer.
 */
export async function linkTestImages(images: readonly Image[], directory: string): Promise<void> {
  const shared = testImagesDirectory()
  const layers = images.flatMap((image) => image.layers.map(({ path }) => path))
  const paths = [
    ...images.map(({ id }) => join('images', `${id}.json`)),
    ...layers.map((layer) => relative(shared, layer)),
    ...(await keysOf(images)),
  ]
  for (const path of new Set(paths)) {
    await mkdir(dirname(join(directory, path)), { recursive: true, mode: 0o700 })
    await linkOrCopy(join(shared, path), join(directory, path))
  }
}

/** Files that lead from a source to its image. */
async function keysOf(images: readonly Image[]): Promise<readonly string[]> {
  const directory = join(testImagesDirectory(), 'keys')
  const ids = new Set(images.map(({ id }) => id))
  const found: string[] = []
  for (const name of await readdir(directory)) {
    const { image } = JSON.parse(await readFile(join(directory, name), 'utf8'))
    if (ids.has(image)) found.push(join('keys', name))
  }
  return found
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV') throw error
    return copyFile(from, to)
  })
}

/** Debian bookworm with Python. */
export async function pythonImage(signal?: AbortSignal): Promise<Image> {
  return await debianImage(['python3'], signal)
}

/** Debian bookworm with Python, and with what asks for a person: `sudo`, editors, a pager. */
export async function editorsImage(signal?: AbortSignal): Promise<Image> {
  return await debianImage(['less', 'nano', 'python3', 'sudo', 'vim-tiny'], signal)
}

/** Debian bookworm alone. */
export async function bareImage(signal?: AbortSignal): Promise<Image> {
  return await debianImage([], signal)
}

async function debianImage(packages: readonly string[], signal?: AbortSignal): Promise<Image> {
  await using store = await openTestImages()
  return await store.build(
    { kind: 'debian', suite: 'bookworm', packages: [...packages] },
    { signal },
  )
}
