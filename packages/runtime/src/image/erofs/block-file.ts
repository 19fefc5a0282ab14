import { type FileHandle, open, statfs } from 'node:fs/promises'
import { imageLimits } from '../limits.ts'
import { BLOCK_BYTES } from './format.ts'

const BUFFER_BYTES = 1024 * 1024
/** Stretches of zeros from this size on take no disk. */
const ZEROS = Buffer.alloc(64 * 1024)

/** A file written from front to back in large pieces, with its position counted. Long zeros in it are holes. */
export class BlockFile implements AsyncDisposable {
  readonly #file: FileHandle
  readonly #path: string
  readonly #sizeBytesMax: number
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  #buffered = 0
  #flushed = 0
  #writtenSinceLook = 0

  private constructor(file: FileHandle, path: string, sizeBytesMax: number) {
    this.#file = file
    this.#path = path
    this.#sizeBytesMax = sizeBytesMax
  }

  /** Fails when the path exists. */
  static async create(path: string, sizeBytesMax: number): Promise<BlockFile> {
    return new BlockFile(await open(path, 'wx+', 0o444), path, sizeBytesMax)
  }

  get position(): number {
    return this.#flushed + this.#buffered
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.position + bytes.length > this.#sizeBytesMax)
      throw new LayerTooLarge(this.#sizeBytesMax)
    for (let taken = 0; taken < bytes.length; ) {
      const piece = bytes.subarray(taken, taken + BUFFER_BYTES - this.#buffered)
      this.#buffer.set(piece, this.#buffered)
      this.#buffered += piece.length
      taken += piece.length
      if (this.#buffered === BUFFER_BYTES) await this.#flush()
    }
  }

  /** Zeros up to `position`, which must not lie behind. */
  async padTo(position: number): Promise<void> {
    await this.append(Buffer.alloc(position - this.position))
  }

  async padToBlock(): Promise<void> {
    await this.padTo(Math.ceil(this.position / BLOCK_BYTES) * BLOCK_BYTES)
  }

  /** Overwrites the start, and makes the whole file durable. */
  async finish(firstBlock: Uint8Array): Promise<void> {
    await this.#flush()
    await this.#file.truncate(this.#flushed)
    await writeFully(this.#file, firstBlock, 0)
    await this.#file.sync()
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (let at = 0; ; ) {
      const { bytesRead } = await this.#file.read(this.#buffer, 0, BUFFER_BYTES, at)
      if (bytesRead === 0) return
      yield this.#buffer.subarray(0, bytesRead)
      at += bytesRead
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }

  /** Whoever sends little can make a layer that is large: it must not take the disk from the daemon itself. */
  async #look(sizeBytes: number): Promise<void> {
    const { diskLookBytes, diskReserveBytes, diskReserveShare } = imageLimits
    this.#writtenSinceLook += sizeBytes
    if (this.#writtenSinceLook < diskLookBytes) return
    this.#writtenSinceLook = 0
    const { bavail, blocks, bsize } = await statfs(this.#path)
    const reserve = Math.min(diskReserveBytes, diskReserveShare * blocks * bsize)
    if (bavail * bsize < reserve) throw new DiskReserved('what is left of the disk is reserved')
  }

  async #flush(): Promise<void> {
    for (const [from, to] of stretchesOfData(this.#buffer.subarray(0, this.#buffered))) {
      await this.#look(to - from)
      await writeFully(this.#file, this.#buffer.subarray(from, to), this.#flushed + from)
    }
    this.#flushed += this.#buffered
    this.#buffered = 0
  }
}

/** No space is left, but what others need. */
class DiskReserved extends Error {
  readonly code = 'ENOSPC'
}

/** From and to of each, in pieces as large as `ZEROS`. */
function stretchesOfData(bytes: Buffer): (readonly [number, number])[] {
  const stretches: (readonly [number, number])[] = []
  let from = 0
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const to = Math.min(at + ZEROS.length, bytes.length)
    if (bytes.compare(ZEROS, 0, to - at, at, to) !== 0) continue
    if (at > from) stretches.push([from, at])
    from = to
  }
  if (bytes.length > from) stretches.push([from, bytes.length])
  return stretches
}

/** The content is larger than a layer may be. */
export class LayerTooLarge extends Error {
  override readonly name = 'LayerTooLarge'

  constructor(sizeBytesMax: number) {
    super(`the layer is larger than the limit of ${sizeBytesMax} bytes`)
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}
