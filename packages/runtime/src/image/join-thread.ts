/** Joins layers on a thread of its own, which lets all others go first. Posts the layers that are left. */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { ImageLayer } from './image.ts'
import { ImageTrees } from './image-trees.ts'
import { joinedLayers } from './joined-layers.ts'
import { imageLimits } from './limits.ts'

export interface JoinRequest {
  readonly layers: readonly ImageLayer[]
  /** Where the joined layer goes. */
  readonly path: string
}

const LOWEST = 19

const { layers, path } = workerData as JoinRequest
// Of this thread alone, as Linux counts it.
setPriority(LOWEST)
const keep = imageLimits.layersKept
const { signal } = new AbortController()
parentPort?.postMessage(await joinedLayers(layers, { keep, path, trees: new ImageTrees(), signal }))
