import { expect, test } from 'vitest'
import { promisesOf } from './promises.ts'

const GIB = 2 ** 30
const load = {
  sandboxes: 3,
  cpu: { total: 2, requests: 0.3, limits: 6 },
  memory: { total: 8 * GIB, free: 5 * GIB, kept: GIB, requests: GIB, limits: 12 * GIB },
  overcommit: { cpu: 3, memory: 1.5 },
}
const health = { ok: true, version: '1', state: 'serving' } as const

test('what is promised, what all could take, and what is free', () => {
  expect(promisesOf({ ...health, load })).toEqual({
    ...{ name: 'promises', ok: true, required: false },
    found:
      '3 sandboxes were promised 1 GiB and 0.3 processors; limits 12 GiB (1.5 × the memory) and 6 processors (3 ×); 5 GiB of 8 GiB free',
  })
})

test('why nothing is begun comes first', () => {
  expect(promisesOf({ ...health, load, nothingNew: 'the machine is full' })).toMatchObject({
    ...{ ok: false, required: false },
    found: expect.stringMatching(/^the machine is full; 3 sandboxes/),
    mend: expect.any(String),
  })
  expect(promisesOf(health)).toBeUndefined()
})
