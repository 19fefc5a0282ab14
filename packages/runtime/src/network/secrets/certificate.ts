/** Certificates of a daemon's own, of the kind P-256 with SHA-256. */
import {
  createHash,
  createPrivateKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { promisify } from 'node:util'
import ipaddr from 'ipaddr.js'
import { NETWORK_LIMITS } from '../limits.ts'
import * as der from './der.ts'

/** A certificate and its key, as PEM. */
export interface KeyedCertificate {
  readonly certificate: string
  readonly key: string
}

interface Names {
  readonly issuer: string
  readonly subject: string
}

const generate = promisify(generateKeyPair)
/** Of a common name: 64, less the product's own. */
const NAME_LENGTH_MAX = 56
const DAY_MS = 86_400_000
/** Clocks of sandboxes and daemon may differ. */
const EARLIER_MS = DAY_MS
const ECDSA_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'))

/** An authority that may sign for hosts, and for nothing below it. `whose`: for who reads it. */
export async function makeAuthority(whose: string, nowMs: number): Promise<KeyedCertificate> {
  // What a distinguished name would have to escape, a person does without.
  const name = `Sandlot ${whose.replace(/[^A-Za-z0-9 ._-]/g, '_').slice(0, NAME_LENGTH_MAX)}`
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const certificate = signed(privateKey, {
    ...{ issuer: name, subject: name, spki, nowMs },
    days: NETWORK_LIMITS.authorityDays,
    extensions: [
      extension('2.5.29.19', true, der.sequence(der.boolean(true), der.integer(Buffer.of(0)))),
      // keyCertSign, cRLSign
      extension('2.5.29.15', true, der.bits(Buffer.of(0b0000_0110), 1)),
      extension('2.5.29.14', false, der.octets(keyId(spki))),
    ],
  })
  return { certificate, key: pemOf(privateKey) }
}

/** A certificate for one host, a name or an address. */
export async function issueFor(
  host: string,
  authority: KeyedCertificate,
  nowMs: number,
): Promise<KeyedCertificate> {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const parent = new X509Certificate(authority.certificate)
  const parentSpki = parent.publicKey.export({ type: 'spki', format: 'der' })
  const alternative = ipaddr.isValid(host)
    ? der.contextValue(7, Buffer.from(ipaddr.parse(host).toByteArray()))
    : der.contextValue(2, Buffer.from(host))
  const certificate = signed(createPrivateKey(authority.key), {
    ...{ issuer: nameOf(parent), subject: 'sandlot', spki, nowMs },
    days: NETWORK_LIMITS.certificateDays,
    extensions: [
      extension('2.5.29.19', true, der.sequence()),
      // digitalSignature
      extension('2.5.29.15', true, der.bits(Buffer.of(0b1000_0000), 7)),
      // serverAuth
      extension('2.5.29.37', false, der.sequence(der.oid('1.3.6.1.5.5.7.3.1'))),
      extension('2.5.29.17', true, der.sequence(alternative)),
      extension('2.5.29.14', false, der.octets(keyId(spki))),
      extension('2.5.29.35', false, der.sequence(der.contextValue(0, keyId(parentSpki)))),
    ],
  })
  return { certificate, key: pemOf(privateKey) }
}

function signed(
  key: KeyObject,
  of: Names & {
    readonly spki: Buffer
    readonly nowMs: number
    readonly days: number
    readonly extensions: readonly Buffer[]
  },
): string {
  const { issuer, subject, spki, nowMs, days, extensions } = of
  const [from, until] = [new Date(nowMs - EARLIER_MS), new Date(nowMs + days * DAY_MS)]
  const content = der.sequence(
    der.context(0, der.integer(Buffer.of(2))),
    der.integer(randomBytes(16)),
    ECDSA_SHA256,
    named(issuer),
    der.sequence(der.time(from), der.time(until)),
    named(subject),
    spki,
    der.context(3, der.sequence(...extensions)),
  )
  const signature = sign('sha256', content, key)
  const whole = der.sequence(content, ECDSA_SHA256, der.bits(signature))
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** A distinguished name of a common name alone. */
function named(text: string): Buffer {
  return der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.utf8(text))))
}

function nameOf({ subject }: X509Certificate): string {
  return /^CN=(.*)$/m.exec(subject)?.[1] ?? ''
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [der.boolean(true)] : []
  return der.sequence(der.oid(id), ...flag, der.octets(value))
}

function keyId(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20)
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}
