import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'

interface Listed {
  readonly items: readonly { readonly id: string; readonly name?: string }[]
}

async function write(at: TestDaemon, sandbox: string, path: string, text: string) {
  const { status } = await at.ask('PUT', `/v1/sandboxes/${sandbox}/files?path=${path}`, {
    body: Buffer.from(text),
  })
  expect(status).toBe(200)
}

async function take(at: TestDaemon, sandbox: string, json: object = {}) {
  const path = `/v1/sandboxes/${sandbox}/snapshots`
  return await at.ask('POST', path, { json: { kind: 'filesystem', ...json } })
}

test('a snapshot is an image of its own, which goes when nothing needs it', async () => {
  await using at = await startTestDaemon()
  const { id, image } = await at.sandbox()
  await write(at, id, '/work/a', 'before')
  const taken = await take(at, id, { name: 'first', tags: { step: '1' } })
  expect(taken).toMatchObject({ status: 201, json: { parent: image, sandbox: id, name: 'first' } })
  const snapshot = taken.json as { id: string; image: string }
  const created = await at.ask('POST', '/v1/sandboxes', { json: { from: snapshot.id } })
  expect(created).toMatchObject({ status: 201, json: { image: snapshot.image } })
  const second = (created.json as { id: string }).id
  const path = `/v1/snapshots/${snapshot.id}`
  expect((await at.ask('GET', path)).json).toMatchObject({ id: snapshot.id, tags: { step: '1' } })
  expect(await at.ask('DELETE', path)).toMatchObject({ status: 409, code: 'snapshot_in_use' })
  expect((await at.ask('DELETE', `${path}?force=true`)).status).toBe(204)
  expect(await at.ask('GET', path)).toMatchObject({ status: 404, code: 'snapshot_unknown' })
  await at.ask('DELETE', `/v1/sandboxes/${second}`)
})

test('a name is its newest snapshot’s', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  await write(at, id, '/a', '1')
  const first = (await take(at, id, { name: 'best' })).json as { id: string }
  await write(at, id, '/a', '2')
  const second = (await take(at, id, { name: 'best', tags: { kept: 'yes' } })).json as {
    id: string
  }
  const named = (await at.ask('GET', '/v1/snapshots?name=best')).json as Listed
  expect(named.items.map((item) => item.id)).toEqual([second.id])
  const all = (await at.ask('GET', '/v1/snapshots')).json as Listed
  expect(all.items.map((item) => item.id).sort()).toEqual([first.id, second.id].sort())
  const tagged = (await at.ask('GET', '/v1/snapshots?tag=kept')).json as Listed
  expect(tagged.items.map((item) => item.id)).toEqual([second.id])
})

test('forks are sandboxes of their own', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  await write(at, id, '/a', 'shared')
  const forked = await at.ask('POST', `/v1/sandboxes/${id}/fork`, {
    json: { count: 3, kind: 'filesystem', tags: { fork: 'yes' } },
  })
  const { items: forks } = forked.json as { items: { sandbox: { id: string; tags: object } }[] }
  expect(new Set(forks.map(({ sandbox }) => sandbox.id)).size).toBe(3)
  for (const { sandbox } of forks) {
    expect(sandbox.tags).toMatchObject({ fork: 'yes' })
  }
  expect(((await at.ask('GET', '/v1/snapshots')).json as Listed).items).toEqual([])
})

test('what is not there is told so', async () => {
  await using at = await startTestDaemon()
  expect(await take(at, newId('sandbox'))).toMatchObject({ status: 404, code: 'sandbox_unknown' })
  const { id } = await at.sandbox()
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await take(at, id)).toMatchObject({ status: 410, code: 'sandbox_gone' })
  const from = newId('snapshot')
  const created = await at.ask('POST', '/v1/sandboxes', { json: { from } })
  expect(created).toMatchObject({ status: 404, code: 'snapshot_unknown' })
  expect((await at.ask('GET', '/v1/snapshots/x')).code).toBe('snapshot_unknown')
})
