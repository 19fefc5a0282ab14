import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ForkAnswer, SandboxView, SnapshotView } from '@sandlot/protocol'
import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'

async function changed(at: TestDaemon, body: Record<string, unknown> = {}): Promise<SandboxView> {
  const sandbox = await at.sandbox(body)
  await at.ask('PUT', `/v1/sandboxes/${sandbox.id}/files?path=/etc/new`, { body: sandbox.id })
  return sandbox
}

async function snapshot(at: TestDaemon, sandbox: string, more: Record<string, unknown> = {}) {
  const json = { kind: 'filesystem', ...more }
  const reply = await at.ask('POST', `/v1/sandboxes/${sandbox}/snapshots`, { json })
  if (reply.status !== 201) throw new Error(reply.text)
  return reply.json as SnapshotView
}

const listed = async (at: TestDaemon, query = '') =>
  (await at.ask('GET', `/v1/snapshots${query}`)).json as {
    items: SnapshotView[]
    next: string | null
  }

test('a snapshot is one layer more, and sandboxes start from it', async () => {
  await using at = await startTestDaemon()
  const { id, image } = await changed(at)
  const taken = await snapshot(at, id, { name: 'first', tags: { a: '1' } })
  expect(taken).toMatchObject({ kind: 'filesystem', name: 'first', parent: image, sandbox: id })
  expect(taken.sizeBytes).toBeGreaterThan(0)
  const { layers } = (await at.ask('GET', `/v1/images/${taken.image}`)).json as { layers: [] }
  expect(layers).toHaveLength(2)
  const next = await at.sandbox({ from: taken.id })
  expect(next.image).toBe(taken.image)
  await at.ask('PUT', `/v1/sandboxes/${next.id}/files?path=/etc/newer`, { body: 'x' })
  expect(await snapshot(at, next.id)).toMatchObject({ parent: taken.id })
  const { lastUsedAtMs } = (await at.ask('GET', `/v1/snapshots/${taken.id}`)).json as SnapshotView
  expect(lastUsedAtMs).toBeGreaterThan(0)
})

test('without a change it is the image again, and keeps nobody from the image', async () => {
  await using at = await startTestDaemon()
  const { id, image } = await at.sandbox()
  const taken = await snapshot(at, id)
  expect(taken).toMatchObject({ image, sizeBytes: 0 })
  expect((await at.ask('DELETE', `/v1/snapshots/${taken.id}`)).status).toBe(204)
  expect((await at.ask('GET', `/v1/images/${image}`)).status).toBe(200)
})

test('the newest of a name has it, also under the next daemon', async () => {
  await using directories = await testDirectories()
  let ids: string[] = []
  {
    await using at = await startTestDaemon({ directories })
    const { id } = await changed(at)
    const [one, two] = [
      await snapshot(at, id, { name: 'n' }),
      await snapshot(at, id, { name: 'n' }),
    ]
    ids = [one.id, two.id]
    expect((await listed(at, '?name=n')).items).toEqual([two])
  }
  await using at = await startTestDaemon({ directories })
  expect((await listed(at)).items.map(({ id, name }) => [id, name])).toEqual([
    [ids[0], undefined],
    [ids[1], 'n'],
  ])
  await at.sandbox({ from: ids[0] })
})

test('one whose image has a damaged record keeps nobody from starting, and is not forgotten', async () => {
  await using directories = await testDirectories()
  const taken = await (async () => {
    await using at = await startTestDaemon({ directories })
    return await snapshot(at, (await changed(at)).id, { name: 'kept' })
  })()
  const file = join(directories.dataDirectory, 'images', 'images', `${taken.image}.json`)
  const whole = await readFile(file)
  await writeFile(file, '')
  {
    await using at = await startTestDaemon({ directories })
    const refused = await at.ask('POST', '/v1/sandboxes', { json: { from: 'kept' } })
    expect(refused.json).toMatchObject({ error: { message: expect.stringContaining(file) } })
  }
  await writeFile(file, whole)
  await using at = await startTestDaemon({ directories })
  expect((await listed(at)).items).toMatchObject([taken])
  await at.sandbox({ from: 'kept' })
})

test('one that belongs to something else is in no list, unless all are asked for, or its name', async () => {
  await using at = await startTestDaemon()
  const { id } = await changed(at)
  const [own, hidden] = [
    await snapshot(at, id),
    await snapshot(at, id, { name: 'part/1', hidden: true }),
  ]
  expect((await listed(at)).items).toEqual([own])
  expect((await listed(at, '?all=true')).items).toEqual([own, hidden])
  expect((await listed(at, '?name=part/1')).items).toEqual([hidden])
  const path = `/v1/snapshots/${encodeURIComponent('part/1')}`
  expect((await at.ask('GET', path)).json).toEqual(hidden)
  expect((await at.ask('DELETE', path)).status).toBe(204)
  expect(await at.ask('GET', path)).toMatchObject({ status: 404, code: 'snapshot_unknown' })
})

test('lists go by tag and page by page', async () => {
  await using at = await startTestDaemon()
  const { id } = await changed(at)
  const all = []
  for (const n of ['1', '2', '3']) all.push(await snapshot(at, id, { tags: { n, all: 'yes' } }))
  expect((await listed(at, '?tag=n=2&tag=all')).items).toEqual([all[1]])
  expect((await listed(at, '?tag=none')).items).toEqual([])
  const first = await listed(at, '?limit=2')
  await at.ask('DELETE', `/v1/snapshots/${all[1]?.id}`)
  const second = await listed(at, `?limit=2&after=${first.next}`)
  expect([...first.items, ...second.items]).toEqual(all)
  expect(second.next).toBe(null)
})

test('one in use is deleted by force alone, and what runs goes on', async () => {
  await using at = await startTestDaemon()
  const taken = await snapshot(at, (await changed(at)).id)
  const { id } = await at.sandbox({ from: taken.id })
  const refused = await at.ask('DELETE', `/v1/snapshots/${taken.id}`)
  expect(refused).toMatchObject({ status: 409, code: 'snapshot_in_use' })
  expect(refused.text).toContain(id)
  expect((await at.ask('DELETE', `/v1/snapshots/${taken.id}?force=true`)).status).toBe(204)
  expect((await at.ask('GET', `/v1/sandboxes/${id}`)).json).toMatchObject({ state: 'running' })
  for (const method of ['GET', 'DELETE']) {
    const again = await at.ask(method, `/v1/snapshots/${taken.id}`)
    expect(again).toMatchObject({ status: 404, code: 'snapshot_unknown' })
  }
  const late = await at.ask('POST', '/v1/sandboxes', { json: { from: taken.id } })
  expect(late).toMatchObject({ status: 404, code: 'snapshot_unknown' })
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  await snapshot(at, (await changed(at)).id)
  expect((await at.ask('GET', `/v1/images/${taken.image}`)).code).toBe('image_unknown')
})

test('its image is no image of the list, and goes with it', async () => {
  await using at = await startTestDaemon()
  const { id, image } = await changed(at)
  const taken = await snapshot(at, id)
  const images = (await at.ask('GET', '/v1/images')).json as { items: { id: string }[] }
  expect(images.items.map((each) => each.id)).toEqual([image])
  const refused = await at.ask('DELETE', `/v1/images/${taken.image}`)
  expect(refused).toMatchObject({ status: 409, code: 'image_in_use' })
  expect(refused.text).toContain(`snapshots delete ${taken.id}`)
  await at.ask('DELETE', `/v1/snapshots/${taken.id}`)
  expect((await at.ask('GET', `/v1/images/${taken.image}`)).code).toBe('image_unknown')
})

test.each([
  [{ kind: 'memory' }, 501, 'unsupported'],
  [{ kind: 'filesystem', exclude: ['/'] }, 400, 'invalid_request'],
  [{ kind: 'filesystem', exclude: ['/a/../..'] }, 400, 'invalid_request'],
  [{ kind: 'filesystem', exclude: ['tmp'] }, 400, 'invalid_request'],
  [{ kind: 'disk' }, 400, 'invalid_request'],
])('%j is refused', async (json, status, code) => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  const reply = await at.ask('POST', `/v1/sandboxes/${id}/snapshots`, { json })
  expect(reply).toMatchObject({ status, code })
  expect((await listed(at)).items).toEqual([])
})

test('a sandbox that ended has no more snapshots, nor forks', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  const filesystem = { kind: 'filesystem' }
  for (const [path, json] of [
    ['snapshots', filesystem],
    ['fork', { ...filesystem, count: 1 }],
  ] as const) {
    const reply = await at.ask('POST', `/v1/sandboxes/${id}/${path}`, { json })
    expect(reply).toMatchObject({ status: 410, code: 'sandbox_gone' })
    const unknown = await at.ask('POST', `/v1/sandboxes/${newId('sandbox')}/${path}`, { json })
    expect(unknown).toMatchObject({ status: 404, code: 'sandbox_unknown' })
  }
})

test('forks are sandboxes of their own', async () => {
  await using directories = await testDirectories()
  let image = ''
  {
    await using at = await startTestDaemon({ directories })
    const { id } = await changed(at, { tags: { a: '1' }, env: { A: 'B' } })
    const json = { kind: 'filesystem', count: 3, tags: { b: '2' } }
    const { items: forks } = (await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json }))
      .json as ForkAnswer
    expect(forks).toHaveLength(3)
    for (const each of forks) {
      expect(each).toMatchObject({
        sandbox: { parent: id, owner: 'client', tags: { b: '2' }, env: { A: 'B' } },
      })
    }
    image =
      'sandbox' in (forks[0] ?? {}) ? (forks[0] as { sandbox: SandboxView }).sandbox.image : ''
    expect((await at.ask('GET', `/v1/images/${image}`)).status).toBe(200)
    expect((await listed(at)).items).toEqual([])
    for (const each of forks.slice(1)) {
      if ('sandbox' in each) await at.ask('DELETE', `/v1/sandboxes/${each.sandbox.id}`)
    }
    expect((await at.ask('GET', `/v1/images/${image}`)).status).toBe(200)
    const memory = await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json: { count: 1 } })
    expect(memory).toMatchObject({ status: 501, code: 'unsupported' })
  }
  await using at = await startTestDaemon({ directories })
  expect((await at.ask('GET', `/v1/images/${image}`)).code).toBe('image_unknown')
})

test('the files of forks go with the last of them', async () => {
  await using at = await startTestDaemon()
  const { id } = await changed(at)
  const json = { kind: 'filesystem', count: 2 }
  const { items } = (await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json })).json as ForkAnswer
  const forks = items.flatMap((each) => ('sandbox' in each ? [each.sandbox] : []))
  const image = `/v1/images/${forks[0]?.image}`
  await at.ask('DELETE', `/v1/sandboxes/${forks[0]?.id}`)
  expect((await at.ask('GET', image)).status).toBe(200)
  await at.ask('DELETE', `/v1/sandboxes/${forks[1]?.id}`)
  await expect.poll(async () => (await at.ask('GET', image)).code).toBe('image_unknown')
})

test('a fork that finds no room says so beside those that live', async () => {
  await using at = await startTestDaemon({ daemon: { sandboxesMax: 3 } })
  const { id } = await changed(at)
  const json = { kind: 'filesystem', count: 4 }
  const { items: forks } = (await at.ask('POST', `/v1/sandboxes/${id}/fork`, { json }))
    .json as ForkAnswer
  const failed = forks.filter((each) => 'error' in each)
  expect(failed).toHaveLength(2)
  for (const each of failed)
    expect(each).toMatchObject({ error: { code: 'capacity', retry: true } })
})

test('a run starts its episodes from the image of a snapshot', async () => {
  await using at = await startTestDaemon()
  const taken = await snapshot(at, (await changed(at)).id)
  const json = { name: 'r', kind: 'worker', from: taken.id, concurrency: 1 }
  expect((await at.ask('POST', '/v1/runs', { json })).status).toBe(200)
  const refused = await at.ask('DELETE', `/v1/snapshots/${taken.id}`)
  expect(refused).toMatchObject({ status: 409, code: 'snapshot_in_use' })
  expect(refused.text).toContain('the run r')
})
