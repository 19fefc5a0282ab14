import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { buildImageCommand } from './images.ts'

test.each([
  ['registry', ['git'], {}, 'registry takes no packages: git'],
  ['debian', [], { context: '.' }, '--context means nothing to debian'],
  ['tar', [], { target: 'run' }, '--target means nothing to tar'],
  ['tar', [], { timeout: '5m' }, '--timeout means nothing to tar'],
  ['oci', [], { arg: ['A=1'] }, '--arg means nothing to oci'],
] as const)(
  'what %s has no use for is refused, with %o %o',
  async (kind, packages, options, said) => {
    const refusal = await buildImageCommand(kind, 'it', packages, options).catch((error) => error)
    expect(refusal).toBeInstanceOf(SandlotError)
    expect(refusal).toMatchObject({ code: 'invalid_request', hint: expect.any(String) })
    expect(refusal.message).toBe(said)
  },
)

test('an argument of a Dockerfile is NAME=VALUE', async () => {
  await expect(buildImageCommand('dockerfile', './D', [], { arg: ['A'] })).rejects.toThrow(
    '--arg A is not NAME=VALUE',
  )
})
