/** TLS by certificate files, which may be replaced while the daemon serves. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { Server } from 'node:https'
import { SandlotError } from '@sandlot/protocol'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'

/** Paths of PEM files: the certificate with its chain, and its key. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

export interface Certificate {
  readonly cert: string
  readonly key: string
}

/**
 * Reads a pair that fits and holds now.
 * @throws SandlotError `invalid_request` that names the file
 */
export async function readCertificate(files: TlsFiles, nowMs: number): Promise<Certificate> {
  const [cert, key] = await Promise.all([textOf(files.cert), textOf(files.key)])
  const parsed = parsedBy(files.cert, 'certificate', () => new X509Certificate(cert))
  const secret = parsedBy(files.key, 'key without a passphrase', () => createPrivateKey(key))
  if (!parsed.checkPrivateKey(secret)) {
    throw bad(files.key, `is not the key of the certificate in ${files.cert}`, PAIR)
  }
  if (Date.parse(parsed.validTo) <= nowMs) {
    throw bad(files.cert, `expired at ${parsed.validTo}`, 'Renew it.')
  }
  return { cert, key }
}

/**
 * Takes a renewed pair within seconds, or at once on SIGHUP, until disposed. One that doesn't fit is told and left: what serves goes on
 * with the pair that it has.
 */
export function watchCertificate(
  server: Server,
  files: TlsFiles,
  { log, now }: { readonly log: Logger; readonly now: () => number },
): Disposable {
  let seen = stampOf(files)
  let looking = Promise.resolve()
  async function look(isAsked: boolean): Promise<void> {
    const stamp = stampOf(files)
    const isSame = (await stamp) === (await seen)
    if (isSame && !isAsked) return
    seen = stamp
    try {
      server.setSecureContext(await readCertificate(files, now()))
      log.info({ certificate: files.cert }, 'the certificate was taken anew')
    } catch (error) {
      const { message } = error as Error
      log.warn(`a new certificate is not taken, the old one stays: ${message}`)
    }
  }
  const soon = (isAsked: boolean) => {
    looking = looking.then(() => look(isAsked))
  }
  const timer = setInterval(() => soon(false), SERVER_LIMITS.certificateEveryMs)
  timer.unref()
  const onHangUp = () => soon(true)
  process.on('SIGHUP', onHangUp)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      process.off('SIGHUP', onHangUp)
    },
  }
}

const PAIR =
  'SANDLOT_TLS_CERT and SANDLOT_TLS_KEY name a certificate and its own key, as PEM files.'

/** When both were changed last. */
async function stampOf({ cert, key }: TlsFiles): Promise<string> {
  const of = (path: string) =>
    stat(path).then(
      ({ mtimeMs, ino, size }) => `${mtimeMs} ${ino} ${size}`,
      () => 'gone',
    )
  return `${await of(cert)}, ${await of(key)}`
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw bad(path, `can’t be read: ${(cause as Error).message}`, PAIR)
  }
}

function parsedBy<T>(path: string, what: string, parse: () => T): T {
  try {
    return parse()
  } catch {
    throw bad(path, `is no PEM file of a ${what}`, PAIR)
  }
}

function bad(path: string, why: string, hint: string): SandlotError {
  return new SandlotError('invalid_request', `${path} ${why}`, { hint })
}
