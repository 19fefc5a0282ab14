/**
 * Files with holes, in GNU tar's sparse format 1.0: name and real size are pax records, and the content begins with a map of its
 * stretches of data. The older formats are refused.
 */
import { imageLimits } from '../limits.ts'
import { RECORD_BYTES, TarError } from './header.ts'

export interface SparseFile {
  readonly path: string
  readonly sizeBytes: number
}

/** Of the pax records before an entry; undefined where it is not sparse. */
export function sparseFile(pax: ReadonlyMap<string, string>): SparseFile | undefined {
  if (![...pax.keys()].some((key) => key.startsWith('GNU.sparse.'))) return undefined
  const version = `${pax.get('GNU.sparse.major')}.${pax.get('GNU.sparse.minor')}`
  const path = pax.get('GNU.sparse.name')
  const sizeBytes = wholeNumber(pax.get('GNU.sparse.realsize'))
  if (version !== '1.0' || path === undefined || sizeBytes === undefined) {
    throw new TarError('sparse files are supported in the format 1.0 of GNU tar alone')
  }
  return { path, sizeBytes }
}

/** The file's own bytes, holes as zeros, from what the archive holds of it. */
export async function* filled(
  stored: AsyncIterable<Uint8Array>,
  sizeBytes: number,
): AsyncGenerator<Uint8Array> {
  const content = new Content(stored[Symbol.asyncIterator]())
  const regions = await content.map(sizeBytes)
  let at = 0
  for (const { offset, length } of regions) {
    yield* zeros(offset - at)
    yield* content.take(length)
    at = offset + length
  }
  yield* zeros(sizeBytes - at)
}

interface Region {
  readonly offset: number
  readonly length: number
}

class Content {
  readonly #pieces: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()

  constructor(pieces: AsyncIterator<Uint8Array>) {
    this.#pieces = pieces
  }

  /** Decimal lines: how many, then offset and length of each; the rest of the last block is nothing. */
  async map(sizeBytes: number): Promise<readonly Region[]> {
    let taken = 0
    const line = async (): Promise<number> => {
      let digits = ''
      for (;;) {
        const byte = await this.#byte()
        taken += 1
        if (byte === 0x0a) return checkedNumber(digits)
        digits += String.fromCharCode(byte)
        if (digits.length > 16) throw new TarError('the tar archive is damaged: bad sparse map')
      }
    }
    const count = await line()
    if (count > imageLimits.tarSparseRegionsMax)
      throw new TarError('a sparse file has too many parts')
    const regions: Region[] = []
    for (let end = 0; regions.length < count; ) {
      const region = { offset: await line(), length: await line() }
      const after = region.offset + region.length
      if (region.offset < end || after > sizeBytes) {
        throw new TarError('the tar archive is damaged: bad sparse map')
      }
      regions.push(region)
      end = after
    }
    const padding = (RECORD_BYTES - (taken % RECORD_BYTES)) % RECORD_BYTES
    for (let left = padding; left > 0; left--) await this.#byte()
    return regions
  }

  async *take(length: number): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0; ) {
      if (this.#rest.length === 0) await this.#fill()
      const piece = this.#rest.subarray(0, left)
      this.#rest = this.#rest.subarray(piece.length)
      left -= piece.length
      yield piece
    }
  }

  async #byte(): Promise<number> {
    if (this.#rest.length === 0) await this.#fill()
    const byte = this.#rest[0] as number
    this.#rest = this.#rest.subarray(1)
    return byte
  }

  async #fill(): Promise<void> {
    do {
      const next = await this.#pieces.next()
      if (next.done) throw new TarError('the tar archive ends too early')
      this.#rest = next.value
    } while (this.#rest.length === 0)
  }
}

const ZEROS = new Uint8Array(2 ** 20)

function* zeros(count: number): Generator<Uint8Array> {
  for (let left = count; left > 0; ) {
    const piece = ZEROS.subarray(0, left)
    left -= piece.length
    yield piece
  }
}

function wholeNumber(digits: string | undefined): number | undefined {
  const number = digits !== undefined && /^[0-9]{1,16}$/.test(digits) ? Number(digits) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}

function checkedNumber(digits: string): number {
  const number = wholeNumber(digits)
  if (number === undefined) throw new TarError('the tar archive is damaged: bad sparse map')
  return number
}
