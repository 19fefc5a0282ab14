import { completeResources, KEEP_WARM_DEFAULT_MS } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { Entry } from './entry.ts'
import { startCopies } from './fork.ts'
import type { AcquireRequest } from './port.ts'
import type { NodeSandboxes } from './sandboxes.ts'

const record = {
  sandbox: 'sb_original',
  project: 'default',
  image: 'im_below',
  resources: completeResources(undefined),
  env: {},
  workdir: '/',
  network: {},
  phase: 'agent',
  tags: {},
  lifetimeMs: null,
}

async function copyOf(owned: object): Promise<AcquireRequest | undefined> {
  const asked: AcquireRequest[] = []
  const acquire = async (request: AcquireRequest) => void asked.push(request)
  const original = { record: { ...record, ...owned } } as unknown as Entry
  const sandboxes = { acquire } as unknown as NodeSandboxes
  await startCopies(sandboxes, original, { ids: ['sb_copy'] }, { image: 'im_taken' })
  return asked[0]
}

test('a copy has the times of its original', async () => {
  expect(await copyOf({ owner: 'client', epoch: 0, keepWarmMs: 5 })).toMatchObject({
    ...{ sandbox: 'sb_copy', parent: 'sb_original', image: 'im_taken' },
    ...{ owner: 'client', keepWarmMs: 5 },
  })
  expect(await copyOf({ owner: 'client', epoch: 0, keepWarmMs: null })).not.toHaveProperty(
    'keepWarmMs',
  )
})

test('a copy of an attempt’s sandbox is its client’s, and ends by itself', async () => {
  expect(await copyOf({ owner: 'run/key/1', epoch: 7, keepWarmMs: null })).toMatchObject({
    ...{ owner: 'client', epoch: 0, keepWarmMs: KEEP_WARM_DEFAULT_MS },
  })
})
