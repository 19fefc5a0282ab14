import type { IncomingMessage } from 'node:http'
import { LIMITS, SandlotError } from '@sandlot/protocol'
import { SERVER_LIMITS } from '../limits.ts'

/**
 * A JSON body. An empty one is `{}`, so that a request whose every field is optional needs none.
 * @throws SandlotError `too_large`, `invalid_request`, `timeout`
 */
export async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const bytes = await readWhole(incoming)
  if (bytes.length === 0) return {}
  requireJson(incoming.headers['content-type'])
  const { text, value } = parse(bytes)
  // Only such a text can hold that key, so only such a value is looked through.
  if (/proto|\\u/.test(text)) refusePrototypeKey(value)
  return value
}

/**
 * A page elsewhere can send a form or plain text to any address without being asked first, but nothing that says it is JSON.
 * @throws SandlotError `invalid_request`
 */
function requireJson(contentType: string | undefined): void {
  if (contentType !== undefined && /^application\/json\s*(;|$)/i.test(contentType)) return
  throw new SandlotError('invalid_request', 'the body is not said to be JSON', {
    hint: 'Send the header content-type: application/json.',
  })
}

function parse(bytes: Buffer): { readonly text: string; readonly value: unknown } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw new SandlotError('invalid_request', `the body is not JSON: ${(error as Error).message}`, {
      hint: 'Send UTF-8 JSON, as docs/api.md shows for this route.',
    })
  }
}

/** A name that maps have no place for: it would be dropped without a word. */
const PROTOTYPE_KEY = '__proto__'

function refusePrototypeKey(body: unknown): void {
  const found: [path: string, value: unknown][] = [['body', body]]
  for (let next = found.pop(); next; next = found.pop()) {
    const [path, value] = next
    if (typeof value !== 'object' || value === null) continue
    for (const [name, child] of Object.entries(value)) {
      const where = `${path}.${name}`
      if (name !== PROTOTYPE_KEY) found.push([where, child])
      else throw new SandlotError('invalid_request', `${where.slice(0, 200)}: not a possible name`)
    }
  }
}

async function readWhole(incoming: IncomingMessage): Promise<Buffer> {
  const announced = Number(incoming.headers['content-length'] ?? 0)
  if (announced > LIMITS.bodyBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let sizeBytes = 0
  const stalled = setTimeout(
    () => incoming.destroy(new SandlotError('timeout', 'the body did not come in time')),
    SERVER_LIMITS.bodyMs,
  )
  try {
    for await (const chunk of chunksOf(incoming)) {
      sizeBytes += chunk.length
      if (sizeBytes > LIMITS.bodyBytes) throw tooLarge()
      chunks.push(chunk)
    }
  } finally {
    clearTimeout(stalled)
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

function tooLarge(): SandlotError {
  return new SandlotError('too_large', `a JSON body may have ${LIMITS.bodyBytes} bytes at most`)
}

/** A streamed body, chunk by chunk; given up when nothing comes for long. */
export async function* readBytes(incoming: IncomingMessage): AsyncGenerator<Uint8Array> {
  const stalled = setTimeout(
    () => incoming.destroy(new SandlotError('timeout', 'nothing of the body came for long')),
    SERVER_LIMITS.stallMs,
  )
  let sizeBytes = 0
  let waitedMs = 0
  let askedMs = performance.now()
  try {
    for await (const chunk of chunksOf(incoming)) {
      sizeBytes += chunk.length
      waitedMs += performance.now() - askedMs
      checkPace(sizeBytes, waitedMs)
      // The time that the sandbox takes for a chunk is not the client's.
      stalled.refresh()
      yield chunk
      stalled.refresh()
      askedMs = performance.now()
    }
  } finally {
    clearTimeout(stalled)
  }
}

/** A body that comes by single bytes would hold a connection, and what writes it, for ever. */
export function checkPace(sizeBytes: number, waitedMs: number): void {
  const { trickleMs, trickleBytesPerSecond } = SERVER_LIMITS
  if (waitedMs <= trickleMs || sizeBytes * 1_000 >= waitedMs * trickleBytesPerSecond) return
  const seconds = Math.round(waitedMs / 1_000)
  const message = `the body comes too slowly: ${sizeBytes} bytes in ${seconds} seconds`
  throw new SandlotError('timeout', message, { hint: 'Send what is there, and append the rest.' })
}

/** Leaving the loop early leaves the connection alone, so that an error answer still goes out. */
async function* chunksOf(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* incoming.iterator({ destroyOnReturn: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    throw new SandlotError('cancelled', 'the client left in the middle of the body', {
      cause: error,
    })
  }
}
