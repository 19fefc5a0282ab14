/** What a sandbox changed becomes one layer more over what it was started from. */

import { join } from 'node:path'
import { GuestError } from '../guest/guest-error.ts'
import type { BuiltImage } from './build.ts'
import { LayerTooLarge } from './erofs/block-file.ts'
import type { Image } from './image.ts'
import { diskFull, isDiskFull, sourceInvalid } from './image-error.ts'
import type { ImageFiles } from './image-files.ts'
import { ImageTrees } from './image-trees.ts'
import { joinedLayers } from './joined-layers.ts'
import { imageLimits } from './limits.ts'
import { publishImage } from './publish.ts'
import { TarError } from './tar/header.ts'
import { writeTarLayer } from './tar-layer.ts'

export interface Extending {
  readonly files: ImageFiles
  readonly now: () => number
  readonly signal: AbortSignal
  /** Gets what of the difference the image can't have, a line each. */
  readonly onWarning: (line: string) => void
}

/**
 * The new image, from the tar that a guest's `difference` gives; without any change it is the parent. The parent must stay
 * meanwhile. A guest may send anything: what can't be stored is refused.
 */
export async function extendImage(
  parent: Image,
  difference: AsyncIterable<Uint8Array>,
  extending: Extending,
): Promise<Image> {
  const { files, signal, onWarning } = extending
  try {
    using place = files.ownPlace()
    await using temporary = await files.temporary(place.name)
    const { path: directory } = temporary
    const built = await withLayer(parent, difference, { directory, signal, onWarning })
    signal.throwIfAborted()
    if (!built) return parent
    const source = { kind: 'id', id: parent.id } as const
    return await publishImage(built, { ...extending, directory, source, intermediate: false })
  } catch (cause) {
    if (isDiskFull(cause)) throw diskFull(files.directory, cause)
    if (!isUnholdable(cause)) throw cause
    throw sourceInvalid(
      `The sandbox has something that no layer can hold: ${cause.message}.`,
      'Remove it in the sandbox, or leave it out.',
      cause,
    )
  }
}

/** Said by the agent of what it saw, or found in what it sent. */
function isUnholdable(cause: unknown): cause is Error {
  if (cause instanceof GuestError) return cause.code === 'too_large'
  return cause instanceof TarError || cause instanceof LayerTooLarge
}

async function withLayer(
  { layers, config }: Image,
  difference: AsyncIterable<Uint8Array>,
  { directory, signal, onWarning }: Pick<Extending, 'signal' | 'onWarning'> & { directory: string },
): Promise<BuiltImage | undefined> {
  const path = join(directory, 'difference.erofs')
  const written = await writeTarLayer(difference, { path, settled: true, onLog: onWarning })
  if (written.root.children.size === 0) return undefined
  const { digest, sizeBytes } = written
  const all = [...layers, { path, digest, sizeBytes }]
  if (all.length <= imageLimits.layersMax) return { layers: all, config }
  const joining = {
    keep: imageLimits.layersKept,
    path: join(directory, 'joined.erofs'),
    trees: new ImageTrees(),
    signal,
  }
  return { layers: await joinedLayers(all, joining), config }
}
