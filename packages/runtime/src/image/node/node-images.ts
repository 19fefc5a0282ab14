/**
 * Images with this daemon's Node.js as a layer on top. The layer is written once; over which image it lies is one small record. They are
 * intermediate images: no list shows them, and those that nothing uses are removed.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { ImageConfig, ImageSource } from '@sandlot/protocol'
import { acquireFileLock } from '../file-lock.ts'
import { defaultImageConfig, type Image, type ImageLayer } from '../image.ts'
import { diskFull, isDiskFull } from '../image-error.ts'
import type { ImageFiles } from '../image-files.ts'
import { ImageTrees } from '../image-trees.ts'
import { joinedLayers } from '../joined-layers.ts'
import { imageLimits } from '../limits.ts'
import { publishImage } from '../publish.ts'
import type { WrittenLayer } from '../tar-layer.ts'
import { type NodeExecutable, nodeExecutable } from './executable.ts'
import { missingLibraries } from './glibc.ts'
import { LIBRARY_PATH, writeBaseLayer, writeNodeLayer } from './own-files.ts'

/** Grows when the layers would be others than before. */
const FORMAT = 1

export interface NodeImagesOptions {
  readonly files: ImageFiles
  readonly now: () => number
  /** Of Node.js. */
  readonly executable: string
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
}

export class NodeImages {
  readonly #options: NodeImagesOptions
  readonly #trees = new ImageTrees()
  #node: Promise<NodeExecutable> | undefined

  constructor(options: NodeImagesOptions) {
    this.#options = options
  }

  /** The smallest image in which Node.js runs, without it: made of this machine's own C library. */
  async base(signal: AbortSignal): Promise<Image> {
    const node = await this.#executable()
    return await this.#layer(['base', node.key], signal, (path) => writeBaseLayer(node, path))
  }

  /** Fails with `image_unfit` where Node.js can't run in the image. */
  async over(parent: Image, signal: AbortSignal): Promise<Image> {
    const { files } = this.#options
    const node = await this.#executable()
    const key = keyOf(['over', parent.digest, node.key])
    const present = await files.findByKey(key)
    if (present) return present
    const missing = await missingLibraries(await this.#trees.read(parent.layers), node)
    const layer = await this.#layer(['node', node.key], signal, (path) =>
      writeNodeLayer(node, path),
    )
    const { config } = parent
    const env = missing.length > 0 ? { ...config.env, ...libraryPath(config.env) } : config.env
    return await this.#publish(key, signal, async (directory) => ({
      layers: await this.#joined([...parent.layers, ...layer.layers], directory, signal),
      config: { ...config, env },
      source: { kind: 'id', id: parent.id },
    }))
  }

  async #joined(layers: readonly ImageLayer[], directory: string, signal: AbortSignal) {
    if (layers.length <= imageLimits.layersMax) return layers
    const keep = imageLimits.layersKept
    return await joinedLayers(layers, {
      ...{ keep, trees: this.#trees, signal },
      path: join(directory, 'joined.erofs'),
    })
  }

  /** An image of one layer. */
  async #layer(
    name: readonly string[],
    signal: AbortSignal,
    write: (path: string) => Promise<WrittenLayer>,
  ): Promise<Image> {
    const key = keyOf(name)
    const present = await this.#options.files.findByKey(key)
    if (present) return present
    return await this.#publish(key, signal, async (directory) => {
      const path = join(directory, 'node.erofs')
      const { digest, sizeBytes } = await write(path)
      const layers = [{ path, digest, sizeBytes }]
      return { layers, config: defaultImageConfig, source: { kind: 'tar', blob: digest } }
    })
  }

  async #publish(
    key: string,
    signal: AbortSignal,
    make: (directory: string) => Promise<{
      readonly layers: readonly ImageLayer[]
      readonly config: ImageConfig
      readonly source: ImageSource
    }>,
  ): Promise<Image> {
    const { files, now } = this.#options
    try {
      using _lock = await acquireFileLock(files.lockPath(key), signal)
      const present = await files.findByKey(key)
      if (present) return present
      await using temporary = await files.temporary(key)
      const { path: directory } = temporary
      const { source, ...built } = await make(directory)
      const publishing = { files, directory, source, key, now, signal, intermediate: true }
      return await publishImage(built, publishing)
    } catch (cause) {
      throw isDiskFull(cause) ? diskFull(files.directory, cause) : cause
    }
  }

  /** Shared by all who ask. */
  #executable(): Promise<NodeExecutable> {
    const { executable, closing } = this.#options
    this.#node ??= nodeExecutable(executable, closing).catch((error) => {
      this.#node = undefined
      throw error
    })
    return this.#node
  }
}

function libraryPath(env: ImageConfig['env']): ImageConfig['env'] {
  const before = env.LD_LIBRARY_PATH
  return { LD_LIBRARY_PATH: before ? `${before}:${LIBRARY_PATH}` : LIBRARY_PATH }
}

function keyOf(parts: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify(['node', FORMAT, ...parts]))
    .digest('hex')
}
