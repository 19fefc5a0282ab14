/** What is seen when all layers of an image lie over one another, read back from their files. */
import type { Layer } from '../driver.ts'
import type { DirectoryInode } from './erofs/inode.ts'
import { readErofsTree } from './erofs/read-tree.ts'
import { tooManyEntries } from './image-error.ts'
import { imageLimits } from './limits.ts'
import { mergedOver } from './whiteouts.ts'

const TREES_KEPT = 4

/** Trees of images that were looked at lately, as long as nobody needs their memory. */
export class ImageTrees {
  readonly #kept = new Map<string, WeakRef<DirectoryInode>>()

  async read(layers: readonly Layer[]): Promise<DirectoryInode> {
    const key = layers.map(({ digest }) => digest).join()
    const known = this.#kept.get(key)?.deref()
    if (known) return known
    let tree: DirectoryInode | undefined
    let entries = 0
    for (const { path } of layers) {
      const layer = await readErofsTree(path)
      entries += entriesOf(layer)
      if (entries > imageLimits.imageEntriesMax) throw tooManyEntries()
      tree = mergedOver(layer, tree)
    }
    if (!tree) throw new Error('an image without layers')
    this.#keep(key, tree)
    return tree
  }

  #keep(key: string, tree: DirectoryInode): void {
    this.#kept.delete(key)
    this.#kept.set(key, new WeakRef(tree))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > TREES_KEPT && oldest !== undefined) this.#kept.delete(oldest)
  }
}

function entriesOf({ children }: DirectoryInode): number {
  let entries = children.size
  for (const child of children.values()) {
    if (child.kind === 'directory') entries += entriesOf(child)
  }
  return entries
}
