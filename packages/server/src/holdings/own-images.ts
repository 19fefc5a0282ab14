import { idOf, SandlotError } from '@sandlot/protocol'
import { imageUnknown } from '@sandlot/runtime'
import type { Holdings } from './holdings.ts'

export interface OwnImagesOptions {
  readonly holdings: Holdings
  /** Whether a snapshot or a template of the project has the files of this image. */
  readonly isKept: (project: string, image: string) => boolean
}

const imageId = idOf('image')

/** Images as one project sees them. */
export class OwnImages {
  readonly #options: OwnImagesOptions

  constructor(options: OwnImagesOptions) {
    this.#options = options
  }

  /** Those of a list that are the project's. */
  async of<T extends { readonly id: string }>(project: string, images: readonly T[]): Promise<T[]> {
    const held = await Promise.all(images.map(({ id }) => this.#has(project, id)))
    return images.filter((_, index) => held[index])
  }

  /** @throws SandlotError `image_unknown`, as for one that is not there */
  async require(project: string, id: string): Promise<void> {
    if (await this.#has(project, id)) return
    const { hint } = imageUnknown(id)
    throw new SandlotError('image_unknown', `there is no image ${id}`, { hint })
  }

  async add(project: string, id: string): Promise<void> {
    await this.#options.holdings.add('image', project, id)
  }

  /** Its files go with the last project that has it. */
  async isSharedWithOthers(project: string, id: string): Promise<boolean> {
    return await this.#options.holdings.isHeldByOthers('image', project, id)
  }

  async drop(project: string, id: string): Promise<void> {
    await this.#options.holdings.drop('image', project, id)
  }

  async #has(project: string, id: string): Promise<boolean> {
    // Anything may be asked for: what is no id is nobody's.
    if (!imageId.safeParse(id).success) return false
    const { holdings, isKept } = this.#options
    return (await holdings.holds('image', project, id)) || isKept(project, id)
  }
}
