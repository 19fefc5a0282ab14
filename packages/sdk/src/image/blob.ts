/** Contents that travel by their digest: only what the daemon lacks is sent. */
import { createHash, hash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { isOutage } from '../connection/failure.ts'
import { concatenate } from '../sandbox/bytes.ts'
import { localFailure } from '../sandbox/local-failure.ts'

/** Of a stream that is made here, as long as its digest is not known. */
const HELD_BYTES_MAX = 4 * 2 ** 20

/** Stores bytes; returns their digest. */
export async function putBytes(
  context: ClientContext,
  bytes: Uint8Array,
  waiting: Waiting = {},
): Promise<string> {
  const blob = blobOfBytes(bytes)
  await blob.send(context, waiting)
  return blob.digest
}

/** Stores a file; returns its digest. The file is read twice and never held in memory. */
export async function putFile(
  context: ClientContext,
  path: string,
  waiting: Waiting = {},
): Promise<string> {
  const blob = await blobOfFile(path, waiting)
  await blob.send(context, waiting)
  return blob.digest
}

/** A content of this machine that is at hand until disposed, to be sent where the daemon lacks it. */
export interface LocalBlob extends AsyncDisposable {
  readonly digest: string
  send(context: ClientContext, waiting?: Waiting): Promise<void>
}

export async function blobOfFile(path: string, waiting: Waiting = {}): Promise<LocalBlob> {
  const sha256 = createHash('sha256')
  await pipeline(createReadStream(path), sha256, waiting).catch((cause) => {
    waiting.signal?.throwIfAborted()
    throw localFailure(cause, `cannot read ${path}`)
  })
  return localBlob(path, sha256.digest('hex'))
}

/**
 * Of a stream: its digest must be known before it is sent, and what it is made of may change. One that is longer than a little goes by
 * way of a temporary file.
 */
export async function blobOfStream(
  content: AsyncIterable<Uint8Array>,
  waiting: Waiting = {},
): Promise<LocalBlob> {
  const rest = content[Symbol.asyncIterator]()
  const begin: Uint8Array[] = []
  let heldBytes = 0
  try {
    while (heldBytes <= HELD_BYTES_MAX) {
      waiting.signal?.throwIfAborted()
      const { done, value } = await rest.next()
      if (done) return blobOfBytes(concatenate(begin))
      begin.push(value)
      heldBytes += value.length
    }
    return await blobByFile(joined(begin, rest), waiting)
  } finally {
    await rest.return?.()
  }
}

async function blobByFile(
  content: AsyncIterable<Uint8Array>,
  waiting: Waiting,
): Promise<LocalBlob> {
  const path = join(tmpdir(), `sandlot-blob-${randomUUID()}`)
  const remove = () => rm(path, { force: true })
  const sha256 = createHash('sha256')
  async function* hashed() {
    for await (const chunk of content) {
      sha256.update(chunk)
      yield chunk
    }
  }
  try {
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
    await pipeline(Readable.from(hashed()), file, waiting)
  } catch (cause) {
    await remove()
    waiting.signal?.throwIfAborted()
    throw localFailure(cause, `cannot write ${path}`)
  }
  return { ...localBlob(path, sha256.digest('hex')), [Symbol.asyncDispose]: remove }
}

function blobOfBytes(bytes: Uint8Array): LocalBlob {
  const digest = `sha256:${hash('sha256', bytes)}`
  return {
    digest,
    send: (context, waiting = {}) => put(context, digest, bytes, waiting),
    [Symbol.asyncDispose]: async () => {},
  }
}

function localBlob(path: string, hex: string): LocalBlob {
  const digest = `sha256:${hex}`
  const open = () => Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>
  return {
    digest,
    send: (context, waiting = {}) => put(context, digest, open, waiting),
    [Symbol.asyncDispose]: async () => {},
  }
}

async function* joined(
  begin: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* begin
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/** A stored content. Throws `blob_unknown`. */
export async function getBytes(
  { http, connection }: ClientContext,
  digest: string,
  { signal }: Waiting = {},
): Promise<Uint8Array> {
  const outage = connection.outage()
  for (;;) {
    try {
      const parts: Uint8Array[] = []
      for await (const part of http.bytes('getBlob', { parameters: { digest }, signal })) {
        parts.push(part)
      }
      return concatenate(parts)
    } catch (error) {
      if (!isOutage(error)) throw error
      await outage.wait(error, signal)
    }
  }
}

/** A stored content that is JSON. */
export async function getJson(
  context: ClientContext,
  digest: string,
  waiting: Waiting = {},
): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await getBytes(context, digest, waiting)))
}

async function put(
  { http }: ClientContext,
  digest: string,
  bytes: Uint8Array | (() => ReadableStream<Uint8Array>),
  { signal }: Waiting,
): Promise<void> {
  const parameters = { digest }
  if (await http.exists('headBlob', { parameters, signal })) return
  await http.send('putBlob', { parameters, bytes, signal })
}
