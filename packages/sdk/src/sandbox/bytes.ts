/** Where bytes come from: text, bytes, or a stream of either. `'open'` for a stdin that is written to later. */
export type ByteSource =
  | string
  | Uint8Array
  | AsyncIterable<Uint8Array | string>
  | ReadableStream<Uint8Array>
  | 'open'

const PIECE_BYTES_MAX = 64 * 1024

/** The bytes of a source in pieces of at most 64 KiB. */
export async function* bytesOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  if (typeof source === 'string' || source instanceof Uint8Array) {
    yield* pieces(source)
    return
  }
  for await (const part of source as AsyncIterable<Uint8Array | string>) yield* pieces(part)
}

function* pieces(part: string | Uint8Array): Generator<Uint8Array> {
  const bytes = typeof part === 'string' ? new TextEncoder().encode(part) : part
  for (let start = 0; start < bytes.length; start += PIECE_BYTES_MAX) {
    yield bytes.subarray(start, start + PIECE_BYTES_MAX)
  }
}
