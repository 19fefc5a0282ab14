import type { FrameWriter } from './encode.ts'
import type { LiveStream } from './live-stream.ts'

/** What a stream needs of its mux. */
export interface StreamHost {
  readonly writer: FrameWriter
  /** Something was written to `writer`. */
  written(): void
  /** The stream has a data frame, an end or a result to write when its turn comes. */
  ready(stream: LiveStream): void
  /** The last frame of the stream was written or has come. */
  over(stream: LiveStream): void
}
