import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeDirectory } from '../announcement.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { testDirectories } from '../testing/daemon.ts'
import { SIGNED_PURPOSES, Signer } from './signed.ts'

const SECRET = 'a secret of thirty-two characters'

function signerAt(nowMs: number, secret = SECRET) {
  const clock = { nowMs }
  return { clock, signer: new Signer(secret, () => clock.nowMs) }
}

const codeOf = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return (error as SandlotError).code
  }
  return 'ok'
}

test('what was signed is read back until it expires, and told apart from what was forged', () => {
  const { clock, signer } = signerAt(1_000)
  const token = signer.sign('file', { path: '/a' }, 2_000)
  expect(token).toMatch(/^sf_[\w-]+\.[\w-]{43}$/)
  expect(signer.verify('file', token)).toEqual({ payload: { path: '/a' }, expiresAtMs: 2_000 })
  clock.nowMs = 1_999
  expect(codeOf(() => signer.verify('file', token))).toBe('ok')
  clock.nowMs = 2_000
  expect(() => signer.verify('file', token)).toThrow('expired at 1970-01-01T00:00:02.000Z')
  expect(codeOf(() => signer.verify('file', token))).toBe('token_expired')
  // A forged one is never said to be expired: that would tell that its rest is right.
  expect(codeOf(() => signer.verify('file', `${token.slice(0, -4)}AAAA`))).toBe('token_invalid')
})

test('a token is good for its purpose and its daemon alone', () => {
  const { signer } = signerAt(0)
  for (const purpose of SIGNED_PURPOSES) {
    const token = signer.sign(purpose, 1, 1_000)
    for (const other of SIGNED_PURPOSES) {
      const renamed = signer.sign(other, 1, 1_000).slice(0, 3) + token.slice(3)
      const right = other === purpose ? 'ok' : 'token_invalid'
      expect(codeOf(() => signer.verify(other, renamed))).toBe(right)
    }
    const { signer: foreign } = signerAt(0, `${SECRET}!`)
    expect(codeOf(() => foreign.verify(purpose, token))).toBe('token_invalid')
  }
})

test('no change of a token goes unnoticed', () => {
  const { signer } = signerAt(0)
  const token = signer.sign('sandbox', { id: 'sb' }, 1_000)
  const anyChange = fc.tuple(fc.nat(token.length - 1), fc.constantFrom(...'Aa0_-.= \0'))
  fc.assert(
    fc.property(anyChange, ([at, by]) => {
      fc.pre(token[at] !== by)
      const changed = token.slice(0, at) + by + token.slice(at + 1)
      expect(codeOf(() => signer.verify('sandbox', changed))).toBe('token_invalid')
    }),
  )
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(codeOf(() => signer.verify('sandbox', text))).toBe('token_invalid')
      expect(codeOf(() => signer.verify('sandbox', `st_${text}`))).toBe('token_invalid')
    }),
  )
})

test('what lasts too long, not at all, or is too long is refused when it is signed', () => {
  const { signer } = signerAt(1_000)
  const { signedSandboxMs, signedBytes } = SERVER_LIMITS
  const signed = (expiresAtMs: number) => codeOf(() => signer.sign('sandbox', 1, expiresAtMs))
  expect(signed(1_000 + signedSandboxMs)).toBe('ok')
  for (const bad of [1_001 + signedSandboxMs, 1_000, 0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(signed(bad)).toBe('invalid_request')
  }
  expect(codeOf(() => signer.sign('file', 'x'.repeat(signedBytes), 2_000))).toBe('too_large')
  expect(() => signer.sign('sandbox', 1, 0)).toThrow(SandlotError)
})

test('the secret is made once, for its owner alone', async () => {
  await using directories = await testDirectories()
  const { dataDirectory } = directories
  await makeDirectory(dataDirectory, 0o700)
  const now = () => 0
  const token = (await Signer.open(dataDirectory, now)).sign('port', 80, 1_000)
  expect((await Signer.open(dataDirectory, now)).verify('port', token).payload).toBe(80)
  expect((await stat(join(dataDirectory, 'signing-secret'))).mode & 0o777).toBe(0o600)
})
