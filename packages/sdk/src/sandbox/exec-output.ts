import type { MuxStream, PayloadMap } from '@sandlot/protocol/frames'

export type OutputChannel = 'stdout' | 'stderr'

/** Where a reader stands: bytes from the start of each channel. */
export type OutputOffsets = Readonly<Record<OutputChannel, number>>

export interface OutputPiece {
  readonly channel: OutputChannel
  readonly bytes: Uint8Array
  readonly offset: number
  readonly droppedBytes: number
}

/** From the byte `atByte` of what comes here on, positions are other ones: what is between was not kept. */
interface Mark {
  readonly atByte: number
  readonly offset: number
  readonly droppedBytes: number
}

interface Channel {
  readonly number: number
  /** Position of the first byte that comes. */
  readonly from: number
  readonly marks: Mark[]
  lastMark: Mark | undefined
  /** What the reader took. */
  readBytes: number
  offset: number
}

const STDOUT = 1
const STDERR = 2

/**
 * A command's output over one connection. The daemon tells of gaps ahead of the data behind them; the reader may be far behind
 * that, so each gap waits here for the byte it belongs to.
 */
export class ExecOutput {
  readonly #stream: MuxStream
  readonly #channels: Readonly<Record<OutputChannel, Channel>>
  readonly #arriving: AsyncIterator<{ readonly channel: number; readonly bytes: Uint8Array }>

  /** Made before anything of the stream has come. */
  constructor(stream: MuxStream, from: OutputOffsets) {
    this.#stream = stream
    this.#channels = { stdout: channel(STDOUT, from.stdout), stderr: channel(STDERR, from.stderr) }
    this.#arriving = stream.readAll([STDOUT, STDERR])[Symbol.asyncIterator]()
  }

  /** Takes the event `offset`. */
  mark(event: PayloadMap): void {
    const channel = event.channel === STDERR ? this.#channels.stderr : this.#channels.stdout
    const atByte = this.#stream.receivedBytes(channel.number)
    const mark = { atByte, offset: Number(event.offset), droppedBytes: Number(event.droppedBytes) }
    channel.marks.push(mark)
    channel.lastMark = mark
  }

  /** Behind everything that has come, read or not. */
  get end(): OutputOffsets {
    const endOf = ({ number, from, lastMark }: Channel) =>
      (lastMark?.offset ?? from) + this.#stream.receivedBytes(number) - (lastMark?.atByte ?? 0)
    return { stdout: endOf(this.#channels.stdout), stderr: endOf(this.#channels.stderr) }
  }

  /** Throws away what is unread, and what still comes. */
  discard(): void {
    void this.#arriving.return?.()
  }

  /** What comes, with its positions. Throws what the stream failed with, behind what came before. */
  async *pieces(): AsyncGenerator<OutputPiece> {
    for (;;) {
      const next = await this.#arriving.next()
      if (next.done) return
      const { channel: number, bytes } = next.value
      yield* this.#placed(number === STDERR ? 'stderr' : 'stdout', bytes)
    }
  }

  /** Bytes of both sides of a gap may come in one piece. */
  *#placed(name: OutputChannel, bytes: Uint8Array): Generator<OutputPiece> {
    const channel = this.#channels[name]
    let rest = bytes
    while (rest.length > 0) {
      let droppedBytes = 0
      while (channel.marks[0]?.atByte === channel.readBytes) {
        const mark = channel.marks.shift() as Mark
        channel.offset = mark.offset
        droppedBytes += mark.droppedBytes
      }
      const untilMark = (channel.marks[0]?.atByte ?? Number.POSITIVE_INFINITY) - channel.readBytes
      const piece = rest.subarray(0, untilMark)
      const { offset } = channel
      channel.readBytes += piece.length
      channel.offset += piece.length
      rest = rest.subarray(piece.length)
      yield { channel: name, bytes: piece, offset, droppedBytes }
    }
  }
}

function channel(number: number, from: number): Channel {
  return { number, from, marks: [], lastMark: undefined, readBytes: 0, offset: from }
}
