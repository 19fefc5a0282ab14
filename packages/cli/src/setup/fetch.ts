/** Files from the network: bounded in time and size. */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export interface FetchOptions {
  readonly timeoutMs: number
  readonly sizeBytesMax: number
  readonly accept?: string
  readonly signal?: AbortSignal
}

/** The whole content. Fails with the address and the reason. */
export async function fetchBytes(url: string, options: FetchOptions): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of bytesOf(url, options)) parts.push(part)
  return Buffer.concat(parts)
}

/** Writes the content to a file; returns its SHA-512 in hexadecimal. */
export async function fetchFile(url: string, path: string, options: FetchOptions): Promise<string> {
  const hash = createHash('sha512')
  const hashed = async function* () {
    for await (const part of bytesOf(url, options)) {
      hash.update(part)
      yield part
    }
  }
  await pipeline(Readable.from(hashed()), createWriteStream(path))
  return hash.digest('hex')
}

async function* bytesOf(address: string, options: FetchOptions): AsyncGenerator<Uint8Array> {
  const { timeoutMs, sizeBytesMax, accept = '*/*', signal } = options
  const late = AbortSignal.timeout(timeoutMs)
  const { url, authorization } = withoutCredentials(address)
  try {
    const answer = await fetch(url, {
      headers: { accept, ...authorization },
      signal: signal ? AbortSignal.any([signal, late]) : late,
    })
    if (!answer.ok) throw new Error(`it answers ${answer.status}`)
    let sizeBytes = 0
    for await (const part of answer.body ?? []) {
      sizeBytes += part.length
      if (sizeBytes > sizeBytesMax) throw new Error(`it is larger than ${sizeBytesMax} bytes`)
      yield part
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw new Error(`${url} could not be fetched: ${reasonOf(error)}`, { cause: error })
  }
}

/** `fetch` takes no name and password in an address, and no message should show them. */
function withoutCredentials(address: string): { url: string; authorization: object } {
  const url = new URL(address)
  const { username, password } = url
  if (username === '') return { url: url.href, authorization: {} }
  url.username = ''
  url.password = ''
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
  return { url: url.href, authorization: { authorization } }
}

/** `fetch failed` says nothing; what is behind it does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message !== ''
    ? error.cause.message
    : error.message
}
