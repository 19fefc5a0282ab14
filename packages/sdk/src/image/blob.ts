/** Contents that travel by their digest: only what the daemon lacks is sent. */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandlotError } from '@sandlot/protocol'
import { request } from '../connection/http.ts'
import type { Waiting } from '../sandbox/files.ts'
import type { SandboxContext } from '../sandbox/sandbox.ts'

/** Stores bytes; returns their digest. */
export async function putBytes(
  context: SandboxContext,
  bytes: Uint8Array,
  { signal }: Waiting = {},
): Promise<string> {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  if (!(await isKnown(context, digest, signal))) {
    await request(await context.endpoint(), 'putBlob', {
      parameters: { digest },
      bytes: bytes as Uint8Array<ArrayBuffer>,
      signal,
    })
  }
  return digest
}

/** Stores a file; returns its digest. The file is read twice and never held in memory. */
export async function putFile(
  context: SandboxContext,
  path: string,
  { signal }: Waiting = {},
): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash).catch((cause) => {
    throw new SandlotError('not_found', `${path} can't be read: ${(cause as Error).message}`, {
      hint: 'Check the path.',
      cause,
    })
  })
  const digest = `sha256:${hash.digest('hex')}`
  if (!(await isKnown(context, digest, signal))) {
    const body = Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>
    await request(await context.endpoint(), 'putBlob', {
      parameters: { digest },
      bytes: body,
      signal,
    })
  }
  return digest
}

/** Stores a stream by way of a temporary file, since its digest must be known before it is sent. */
export async function putStream(
  context: SandboxContext,
  content: AsyncIterable<Uint8Array>,
  waiting: Waiting = {},
): Promise<string> {
  const path = join(tmpdir(), `sandlot-blob-${randomUUID()}`)
  try {
    await pipeline(Readable.from(content), createWriteStream(path, { mode: 0o600 }))
    return await putFile(context, path, waiting)
  } finally {
    await rm(path, { force: true })
  }
}

/** A stored content. Throws `blob_unknown`. */
export async function getBytes(
  context: SandboxContext,
  digest: string,
  { signal }: Waiting = {},
): Promise<Uint8Array> {
  const answer = await request(await context.endpoint(), 'getBlob', {
    parameters: { digest },
    signal,
  })
  return new Uint8Array(await answer.arrayBuffer())
}

async function isKnown(
  context: SandboxContext,
  digest: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    await request(await context.endpoint(), 'headBlob', { parameters: { digest }, signal })
    return true
  } catch (error) {
    // The answer to HEAD has no body, so no envelope: only its status tells.
    if (error instanceof SandlotError && error.retry && error.code !== 'internal') throw error
    return false
  }
}
