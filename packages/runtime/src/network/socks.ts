import type { Duplex } from 'node:stream'
import { ByteReader } from './byte-reader.ts'
import type { RelayCalls } from './connection.ts'
import { type Target, targetOf } from './host.ts'
import { Refusal, type RefusalKind } from './refusal.ts'
import { join } from './tunnel.ts'

export const SOCKS_VERSION = 5
const CONNECT = 1
const NO_AUTHENTICATION = 0
const NO_METHOD = 0xff

/** Answers of RFC 1928. */
const ANSWERS: Readonly<Record<RefusalKind | 'done' | 'command' | 'address', number>> = {
  done: 0,
  limit: 1,
  invalid: 1,
  not_allowed: 2,
  private_address: 2,
  other_name: 2,
  other_server: 2,
  bytes_limit: 2,
  rate_limit: 1,
  secret: 1,
  unresolved: 4,
  unreachable: 5,
  timeout: 6,
  command: 7,
  address: 8,
}

/** Speaks SOCKS 5 on a connection from inside: no authentication, CONNECT alone. Names are resolved here. */
export async function serveSocks(inner: Duplex, calls: RelayCalls): Promise<void> {
  const reader = new ByteReader(inner)
  let release: (() => void) | undefined
  try {
    const target = await readRequest(inner, reader, calls)
    if (!target) return
    release = calls.occupy(inner)
    if (!release) return void inner.destroy()
    await join(calls, { target, inner, protocol: 'socks' }, () => {
      inner.write(answer(ANSWERS.done))
      reader.release()
    })
  } catch (error) {
    if (!(error instanceof Refusal)) return void inner.destroy()
    inner.end(answer(ANSWERS[error.kind]))
    // Until the client leaves too.
    reader.release()
    inner.resume()
    release?.()
  }
}

async function readRequest(
  inner: Duplex,
  reader: ByteReader,
  calls: RelayCalls,
): Promise<Target | undefined> {
  const [version, methods = 0] = await reader.take(2)
  const offered = methods === 0 ? [] : [...(await reader.take(methods))]
  if (version !== SOCKS_VERSION || !offered.includes(NO_AUTHENTICATION)) {
    inner.end(Buffer.of(SOCKS_VERSION, NO_METHOD))
    return undefined
  }
  inner.write(Buffer.of(SOCKS_VERSION, NO_AUTHENTICATION))
  const [again, command, , kind = 0] = await reader.take(4)
  const host = await readHost(reader, kind)
  const problem = host === undefined ? 'address' : command === CONNECT ? undefined : 'command'
  if (again !== SOCKS_VERSION || problem) {
    inner.end(answer(ANSWERS[problem ?? 'invalid']))
    return undefined
  }
  const port = (await reader.take(2)).readUInt16BE()
  const target = targetOf(host as string, port)
  if (target) return target
  calls.refuse('socks')
  inner.end(answer(ANSWERS.invalid))
  return undefined
}

async function readHost(reader: ByteReader, kind: number): Promise<string | undefined> {
  if (kind === 1) return (await reader.take(4)).join('.')
  if (kind === 3) {
    const [length = 0] = await reader.take(1)
    return length === 0 ? '' : (await reader.take(length)).toString('latin1')
  }
  if (kind === 4) {
    const bytes = await reader.take(16)
    const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
    return `[${groups.join(':')}]`
  }
  return undefined
}

/** With an address that says nothing: where this machine's end is, is nobody's business inside. */
function answer(code: number): Buffer {
  return Buffer.of(SOCKS_VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0)
}
