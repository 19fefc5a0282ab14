/** Which images go when there is too little room. */
import type { Image } from './image.ts'

export interface Candidate {
  readonly image: Image
  readonly usedAtMs: number
}

export interface Room {
  /** What the layers of all images may take together. */
  readonly sizeBytesMax: number
  /** In use: they stay, with their layers. */
  readonly isPinned: (id: string) => boolean
  /** Those used after this stay: somebody may be about to use them again. */
  readonly usedBeforeMs: number
}

/**
 * The least that must go: of those whose removal frees something intermediate results and joined forms first, then those that were used the longest
 * ago; where layers are shared so that none frees anything alone, the first in the same order.
 */
export function imagesToCollect(candidates: readonly Candidate[], room: Room): Image[] {
  const layers = new LayerUse(candidates)
  const left = candidates
    .filter(({ image, usedAtMs }) => !room.isPinned(image.id) && usedAtMs < room.usedBeforeMs)
    .sort((a, b) => rank(a) - rank(b) || a.usedAtMs - b.usedAtMs)
  const gone: Image[] = []
  while (layers.sizeBytes > room.sizeBytesMax) {
    const freeing = left.findIndex(({ image }) => layers.freedBy(image) > 0)
    const [next] = left.splice(Math.max(0, freeing), 1)
    if (!next) break
    layers.drop(next.image)
    gone.push(next.image)
  }
  return gone
}

/** How many images have each layer, and what the layers take together. */
class LayerUse {
  readonly #users = new Map<string, number>()
  sizeBytes = 0

  constructor(candidates: readonly Candidate[]) {
    for (const { image } of candidates) {
      for (const { digest, sizeBytes } of image.layers) {
        const count = this.#users.get(digest) ?? 0
        if (count === 0) this.sizeBytes += sizeBytes
        this.#users.set(digest, count + 1)
      }
    }
  }

  freedBy({ layers }: Image): number {
    const alone = layers.filter(({ digest }) => this.#users.get(digest) === 1)
    return alone.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  drop(image: Image): void {
    this.sizeBytes -= this.freedBy(image)
    for (const { digest } of image.layers) {
      this.#users.set(digest, (this.#users.get(digest) ?? 0) - 1)
    }
  }
}

function rank({ image }: Candidate): number {
  return image.intermediate || image.joinedOf !== undefined ? 0 : 1
}
