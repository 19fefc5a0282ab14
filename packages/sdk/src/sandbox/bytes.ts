/** Where bytes come from: text (as UTF-8), bytes, or a stream of either. */
export type ByteSource =
  | string
  | Uint8Array
  | AsyncIterable<Uint8Array | string>
  | ReadableStream<Uint8Array>

const PIECE_BYTES_MAX = 64 * 1024

/** The bytes of a source in pieces of at most 64 KiB. */
export async function* bytesOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  if (isWhole(source)) {
    yield* pieces(source)
    return
  }
  for await (const part of source as AsyncIterable<Uint8Array | string>) yield* pieces(part)
}

/** Whether it is all there, and can be sent again. */
export function isWhole(source: unknown): source is string | Uint8Array {
  return typeof source === 'string' || source instanceof Uint8Array
}

function* pieces(part: string | Uint8Array): Generator<Uint8Array> {
  const bytes = typeof part === 'string' ? new TextEncoder().encode(part) : part
  for (let start = 0; start < bytes.length; start += PIECE_BYTES_MAX) {
    yield bytes.subarray(start, start + PIECE_BYTES_MAX)
  }
}

/** Text as it is; bytes that are not UTF-8 are replaced. */
export function textOf(bytes: Uint8Array): string {
  return newTextDecoder().decode(bytes)
}

/** One that leaves a byte order mark where it is: it is part of the content. */
export function newTextDecoder(): InstanceType<typeof TextDecoder> {
  return new TextDecoder('utf-8', { ignoreBOM: true })
}

export function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0] as Uint8Array
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let position = 0
  for (const part of parts) {
    whole.set(part, position)
    position += part.length
  }
  return whole
}
