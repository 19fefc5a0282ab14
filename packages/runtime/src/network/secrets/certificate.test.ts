import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:tls'
import { beforeAll, expect, test } from 'vitest'
import { listening } from '../testing/relay-bed.ts'
import { Authority } from './authority.ts'
import { issueFor, type KeyedCertificate, makeAuthority } from './certificate.ts'

const NOW_MS = Date.parse('2026-06-01T12:00:00Z')
let own: KeyedCertificate
beforeAll(async () => {
  own = await makeAuthority('project a,b=c', NOW_MS)
})

test('an authority is one, and signs for nothing below it', () => {
  const authority = new X509Certificate(own.certificate)
  expect(authority.subject).toBe('CN=Sandlot project a_b_c')
  expect(authority.ca).toBe(true)
  expect(authority.verify(authority.publicKey)).toBe(true)
  expect(authority.checkIssued(authority)).toBe(true)
  expect(Date.parse(authority.validFrom)).toBeLessThan(NOW_MS)
})

test.each(['api.example.org', '10.0.0.5', 'fd00::5', 'xn--bcher-kva.example'])(
  'a certificate for %s is good for that host alone',
  async (host) => {
    const { certificate } = await issueFor(host, own, NOW_MS)
    const leaf = new X509Certificate(certificate)
    const authority = new X509Certificate(own.certificate)
    expect(leaf.verify(authority.publicKey)).toBe(true)
    expect(leaf.checkIssued(authority)).toBe(true)
    expect(leaf.ca).toBe(false)
    const check = host.includes('.') && !/^[0-9.]+$/.test(host) ? 'checkHost' : 'checkIP'
    expect(leaf[check](host)).toBe(host)
    expect(leaf.checkHost('other.example')).toBeUndefined()
    expect(Date.parse(leaf.validTo) - NOW_MS).toBe(30 * 86_400_000)
  },
)

test('TLS stands by them, and not without the authority', async () => {
  const today = await makeAuthority('project', Date.now())
  const authority = new Authority(today, () => Date.now())
  const secureContext = await authority.contextFor('api.example.org')
  expect(await authority.contextFor('api.example.org')).toBe(secureContext)
  await using server = await listening(
    createServer({ SNICallback: (_name, done) => done(null, secureContext) }, (socket) =>
      socket.end('hello'),
    ),
  )
  const ask = (ca: string | undefined) =>
    connect({
      ...{ port: server.port, host: '127.0.0.1', servername: 'api.example.org' },
      ...(ca === undefined ? {} : { ca }),
    })
  const trusting = ask(authority.certificate)
  const [said] = await once(trusting, 'data')
  expect(String(said)).toBe('hello')
  trusting.destroy()
  const [error] = await once(ask(undefined), 'error')
  expect(String(error)).toMatch(/certificate/)
})
