/** Payloads from this size on are kept as they came; smaller ones are gathered in blocks. */
const GATHER_BYTES_MAX = 8_192
/** Blocks grow from the first to the second size. */
const BLOCK_BYTES_MIN = 512
const BLOCK_BYTES_MAX = 32_768
/** Beyond so many blocks the order between channels gives way to a bound on memory. */
const ORDERED_BLOCKS_MAX = 256
/** Blocks that were taken are cut off the array from this many on. */
const COMPACT_BLOCKS = 64

export interface ChannelChunk {
  readonly channel: number
  readonly bytes: Uint8Array
}

interface Block {
  readonly channel: number
  bytes: Uint8Array
  /** Bytes in use; `bytes` has room for more where the block is a gathered one. */
  length: number
}

interface Waiter {
  readonly resolve: (result: IteratorResult<ChannelChunk>) => void
  readonly reject: (reason: unknown) => void
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * Data that has come and waits for its reader, for one channel or several in the order of arrival. What it holds is
 * bounded by the credit given for those channels: small payloads are copied together, so that neither a
 * flood of tiny frames nor a tiny view on a large chunk makes it hold more.
 */
export class Inbox {
  #blocks: Block[] = []
  #head = 0
  /** The last block of each channel: where its small payloads are gathered. */
  readonly #tails = new Map<number, Block>()
  #waiter: Waiter | undefined
  #over = false
  #failure: { reason: unknown } | undefined
  #thrownAway = false
  readonly #onTaken: (channel: number, bytes: number) => void

  /** `onTaken` hears of all bytes that left: read, or thrown away. */
  constructor(onTaken: (channel: number, bytes: number) => void) {
    this.#onTaken = onTaken
  }

  push(channel: number, bytes: Uint8Array): void {
    if (this.#thrownAway) this.#onTaken(channel, bytes.length)
    else if (this.#over) return
    else if (this.#waiter) {
      const waiter = this.#waiter
      this.#waiter = undefined
      waiter.resolve({ done: false, value: { channel, bytes } })
      this.#onTaken(channel, bytes.length)
    } else if (bytes.length > GATHER_BYTES_MAX) {
      this.#append({ channel, bytes, length: bytes.length })
    } else this.#gather(channel, bytes)
  }

  next(): Promise<IteratorResult<ChannelChunk>> {
    const block = this.#shift()
    if (block) {
      const bytes = block.bytes.subarray(0, block.length)
      this.#onTaken(block.channel, block.length)
      return Promise.resolve({ done: false, value: { channel: block.channel, bytes } })
    }
    if (this.#failure) return Promise.reject(this.#failure.reason)
    if (this.#over) return Promise.resolve(DONE)
    if (this.#waiter) return Promise.reject(new TypeError('next() while another next() waits'))
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
    })
  }

  /** No more comes: readers end, or throw `failure`, behind what is here. The first call wins. */
  finish(failure?: { reason: unknown }): void {
    if (this.#over) return
    this.#over = true
    this.#failure = failure
    const waiter = this.#waiter
    this.#waiter = undefined
    if (failure) waiter?.reject(failure.reason)
    else waiter?.resolve(DONE)
  }

  /** Drops what is here, and from now on whatever comes. */
  discard(): void {
    this.#thrownAway = true
    for (let block = this.#shift(); block; block = this.#shift()) {
      this.#onTaken(block.channel, block.length)
    }
  }

  /** Takes over what another inbox holds, as if it had come here. */
  adopt(other: Inbox): void {
    for (let block = other.#shift(); block; block = other.#shift()) this.#append(block)
  }

  #append(block: Block): void {
    this.#blocks.push(block)
    this.#tails.set(block.channel, block)
  }

  #shift(): Block | undefined {
    const block = this.#blocks[this.#head]
    if (!block) return undefined
    this.#head++
    if (this.#tails.get(block.channel) === block) this.#tails.delete(block.channel)
    if (this.#head >= COMPACT_BLOCKS && this.#head * 2 >= this.#blocks.length) {
      this.#blocks = this.#blocks.slice(this.#head)
      this.#head = 0
    }
    return block
  }

  #gather(channel: number, bytes: Uint8Array): void {
    const tail = this.#tails.get(channel)
    const needed = (tail?.length ?? 0) + bytes.length
    const isLast = tail === this.#blocks[this.#blocks.length - 1]
    const crowded = this.#blocks.length - this.#head > ORDERED_BLOCKS_MAX
    if (!tail || needed > BLOCK_BYTES_MAX || !(isLast || crowded)) {
      const room = new Uint8Array(Math.max(bytes.length, BLOCK_BYTES_MIN))
      room.set(bytes)
      this.#append({ channel, bytes: room, length: bytes.length })
      return
    }
    if (needed > tail.bytes.length) {
      const size = Math.min(BLOCK_BYTES_MAX, Math.max(needed, 2 * tail.bytes.length))
      const room = new Uint8Array(size)
      room.set(tail.bytes.subarray(0, tail.length))
      tail.bytes = room
    }
    tail.bytes.set(bytes, tail.length)
    tail.length = needed
  }
}
