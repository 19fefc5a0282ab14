import { LIMITS, SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ClientContext } from '../connection/context.ts'
import { Artifacts } from './artifacts.ts'

function artifacts(): Artifacts {
  const http = { exists: async () => false, send: async () => ({}) }
  const context = { http } as unknown as ClientContext
  const files = {
    async *readStream() {
      yield* []
      throw new SandlotError('file_not_found', 'there is no such file')
    },
  }
  return new Artifacts(context, { files: files as never, signal: new AbortController().signal })
}

test('however many are given at once, no more are kept than a report may have', async () => {
  const kept = artifacts()
  const names = Array.from({ length: LIMITS.artifacts + 10 }, (_, n) => `file-${n}`)
  kept.log('said')
  const all = await Promise.allSettled(names.map((name) => kept.put(name, name)))
  const refused = all.filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(11)
  expect(refused).toContainEqual(
    expect.objectContaining({ reason: expect.objectContaining({ code: 'too_large' }) }),
  )
  const collected = (await kept.collect()).map(({ name }) => name)
  expect(collected).toHaveLength(LIMITS.artifacts)
  expect(collected).toContain('log')
})

test('one that could not be kept takes no place', async () => {
  const kept = artifacts()
  for (let n = 0; n < LIMITS.artifacts + 10; n++) {
    await expect(kept.put(`missing-${n}`, { path: '/missing' })).rejects.toThrow('no such file')
  }
  await kept.put('there', 'text')
  expect(await kept.collect()).toMatchObject([{ name: 'there', sizeBytes: 4 }])
})
