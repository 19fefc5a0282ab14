import { NETWORK_LIMITS } from '../limits.ts'

/**
 * What a connection begins with: TLS for a server of this name, or for whichever answers; what looks like TLS and can't be read; or
 * something else.
 */
export type Beginning =
  | { readonly kind: 'tls'; readonly serverName?: string }
  | { readonly kind: 'broken'; readonly why: string }
  | { readonly kind: 'other' }

const RECORD = { changeCipherSpec: 0x14, alert: 0x15, handshake: 0x16 } as const
/** What a server may be sent before the first handshake message; of the latter alone hellos are made. */
const RECORDS: ReadonlySet<number> = new Set(Object.values(RECORD))
const VERSION_MAJOR = 3
const RECORD_HEAD_BYTES = 5
const RECORD_BYTES_MAX = 2 ** 14 + 256
const MESSAGE_HEAD_BYTES = 4
const CLIENT_HELLO = 1
const SERVER_NAME = 0
const HOST_NAME = 0

/** Takes the first bytes of a connection until they say what it begins with. It holds what it took, and no more than a hello may have. */
export class ClientHelloReader {
  #held: Buffer[] = []
  #length = 0
  /** With fewer bytes nothing more can be said. */
  #wanted = 1

  /** Undefined: more has to come. */
  take(chunk: Buffer): Beginning | undefined {
    this.#held.push(chunk)
    this.#length += chunk.length
    if (this.#length < this.#wanted) return undefined
    const found = beginningOf(this.held())
    if (typeof found !== 'number') return found
    this.#wanted = found
    return undefined
  }

  /** All that was taken. */
  held(): Buffer {
    const all = Buffer.concat(this.#held)
    this.#held = [all]
    return all
  }
}

/** A number: how many bytes there have to be before it can be said. */
function beginningOf(bytes: Buffer): Beginning | number {
  try {
    return readRecords(bytes)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { kind: 'broken', why: error.message }
  }
}

/** A hello may be cut into several records, and alerts that servers overlook may come before it. */
function readRecords(bytes: Buffer): Beginning | number {
  const parts: Buffer[] = []
  let at = 0
  for (let records = 0; ; records += 1) {
    const [type, major] = bytes.subarray(at, at + 2)
    const isRecord =
      (type === undefined || RECORDS.has(type)) && (major === undefined || major === VERSION_MAJOR)
    if (!isRecord && at === 0) return { kind: 'other' }
    if (!isRecord) throw new RangeError('what follows its first record is none')
    if (records === NETWORK_LIMITS.helloRecords) throw new RangeError('it is in too many records')
    if (bytes.length < at + 2) return at + 2
    if (bytes.length < at + RECORD_HEAD_BYTES) return at + RECORD_HEAD_BYTES
    const length = bytes.readUInt16BE(at + 3)
    if (length > RECORD_BYTES_MAX) throw new RangeError('its record is longer than any')
    at += RECORD_HEAD_BYTES
    if (at + length > NETWORK_LIMITS.helloBytes) throw new RangeError('it is longer than any')
    const end = at + length
    if (bytes.length < end) return end
    if (type === RECORD.handshake) {
      parts.push(bytes.subarray(at, end))
      const hello = wholeHello(Buffer.concat(parts))
      if (hello) return readHello(hello)
    }
    at = end
  }
}

/** Without its head; undefined where some of it is missing. */
function wholeHello(message: Buffer): Cursor | undefined {
  if (message.length === 0) return undefined
  if (message[0] !== CLIENT_HELLO) throw new RangeError('its first message is no hello')
  if (message.length < MESSAGE_HEAD_BYTES) return undefined
  const length = message.readUIntBE(1, 3)
  if (length > NETWORK_LIMITS.helloBytes) throw new RangeError('it is longer than any')
  if (message.length < MESSAGE_HEAD_BYTES + length) return undefined
  return new Cursor(message.subarray(MESSAGE_HEAD_BYTES, MESSAGE_HEAD_BYTES + length))
}

function readHello(hello: Cursor): Beginning {
  // Version, random, session, cipher suites, compression.
  hello.take(2 + 32)
  hello.take(hello.number(1))
  hello.take(hello.number(2))
  hello.take(hello.number(1))
  if (hello.isDone) return { kind: 'tls' }
  const extensions = hello.inner(2)
  hello.end()
  let serverName: string | undefined
  while (!extensions.isDone) {
    const type = extensions.number(2)
    const extension = extensions.inner(2)
    if (type !== SERVER_NAME) continue
    // Of two, nobody knows which one a server believes.
    if (serverName !== undefined) throw new RangeError('it names a server twice')
    serverName = readServerName(extension)
  }
  return { kind: 'tls', ...(serverName === undefined ? {} : { serverName }) }
}

function readServerName(extension: Cursor): string {
  const names = extension.inner(2)
  extension.end()
  if (names.number(1) !== HOST_NAME) throw new RangeError('it names a server by no host name')
  const name = names.take(names.number(2)).toString('latin1')
  names.end()
  return name
}

/** Reads on; past the end it throws a RangeError. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isDone(): boolean {
    return this.#at === this.#bytes.length
  }

  take(count: number): Buffer {
    const next = this.#at + count
    if (next > this.#bytes.length) throw new RangeError('it ends early')
    const taken = this.#bytes.subarray(this.#at, next)
    this.#at = next
    return taken
  }

  number(bytes: number): number {
    return this.take(bytes).readUIntBE(0, bytes)
  }

  /** What comes behind its length. */
  inner(lengthBytes: number): Cursor {
    return new Cursor(this.take(this.number(lengthBytes)))
  }

  end(): void {
    if (!this.isDone) throw new RangeError('something is left over in it')
  }
}
