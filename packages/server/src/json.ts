const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/** JSON as bytes, for what the engine keeps. */
export function encodeJson(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value))
}

export function decodeJson(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes))
}
