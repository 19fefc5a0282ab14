import { printable, type TarEntry } from './tar/reader.ts'

const TOLD_MAX = 20

/** Extended attributes that a layer can't have, by path; as many are told as a person would read. */
export class LostAttributes {
  readonly #told: string[] = []
  #more = 0

  note({ path, attributes }: Pick<TarEntry, 'path' | 'attributes'>): void {
    if (attributes.length === 0) return
    if (this.#told.length === TOLD_MAX) this.#more += 1
    else
      this.#told.push(
        `${printable(`/${path.replace(/^(\.?\/)+|\/+$/g, '')}`)} (${attributes.join(', ')})`,
      )
  }

  /** A line for each, and one for those beyond. */
  get warnings(): readonly string[] {
    const lines = this.#told.map((path) => `extended attributes are not kept in layers: ${path}`)
    return this.#more === 0 ? lines : [...lines, `… and of ${this.#more} more files`]
  }
}
