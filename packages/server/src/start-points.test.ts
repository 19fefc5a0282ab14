import type { SandboxView, SnapshotView, TemplateView } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from './testing/daemon.ts'

/** A snapshot and a template under these names, of different content. */
async function saved(at: TestDaemon, names: { snapshot: string; template: string }) {
  const sandbox = await at.sandbox()
  await at.ask('PUT', `/v1/sandboxes/${sandbox.id}/files?path=/etc/new`, { body: 'x' })
  const json = { kind: 'filesystem', name: names.snapshot }
  const taken = await at.ask('POST', `/v1/sandboxes/${sandbox.id}/snapshots`, { json })
  const made = await at.ask('POST', '/v1/templates', {
    json: {
      source: { kind: 'id', id: sandbox.image },
      name: names.template,
      resources: { pids: 7 },
    },
  })
  const template = JSON.parse(made.text.trim().split('\n').at(-1) ?? '').template as TemplateView
  return { snapshot: taken.json as SnapshotView, template }
}

test('a start names a snapshot or a template by its kind and name, or by a name that one of both has', async () => {
  await using at = await startTestDaemon()
  const { snapshot, template } = await saved(at, { snapshot: 'warm', template: 'env/v1' })
  for (const from of ['snapshot:warm', 'warm', `snapshot:${snapshot.id}`]) {
    const started = await at.sandbox({ from })
    expect(started.image).toBe(snapshot.image)
    // What it was started from is known by its id: a name goes elsewhere.
    await at.ask('PUT', `/v1/sandboxes/${started.id}/files?path=/etc/newer`, { body: from })
    const json = { kind: 'filesystem' }
    const next = await at.ask('POST', `/v1/sandboxes/${started.id}/snapshots`, { json })
    expect(next.json).toMatchObject({ parent: snapshot.id })
  }
  for (const from of ['template:env/v1', 'env/v1']) {
    expect(await at.sandbox({ from })).toMatchObject({
      image: template.image,
      resources: { pids: 7 },
    } satisfies Partial<{ [K in keyof SandboxView]: unknown }>)
  }
  const run = { name: 'r', kind: 'worker', concurrency: 1, from: 'snapshot:warm' }
  expect((await at.ask('POST', '/v1/runs', { json: run })).status).toBe(200)
  expect(await at.ask('DELETE', '/v1/snapshots/warm')).toMatchObject({ code: 'snapshot_in_use' })
})

test('a build begins at a name as well', async () => {
  await using at = await startTestDaemon()
  const { snapshot } = await saved(at, { snapshot: 'warm', template: 'cold' })
  const build = async (id: string) => {
    const base = { kind: 'id', id }
    const steps = [{ kind: 'env', env: { A: '1' } }]
    const json = { kind: 'built', base, steps }
    const { text } = await at.ask('POST', '/v1/images', { json })
    return JSON.parse(text.trim().split('\n').at(-1) ?? '')
  }
  const { image } = await build(snapshot.id)
  expect(image).toMatchObject({ id: expect.stringMatching(/^im_/) })
  expect((await build('snapshot:warm')).image.id).toBe(image.id)
  expect((await build('warm')).image.id).toBe(image.id)
  expect(await build('snapshot:none')).toMatchObject({ error: { code: 'snapshot_unknown' } })
})

test('a name that both have is asked back, one that nothing has is unknown', async () => {
  await using at = await startTestDaemon()
  await saved(at, { snapshot: 'same', template: 'same' })
  const create = (from: string) => at.ask('POST', '/v1/sandboxes', { json: { from } })
  const both = await create('same')
  expect(both).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(both.json).toMatchObject({
    error: {
      message: '"same" is the name of a snapshot and of a template',
      hint: 'Say which: snapshot:same or template:same.',
    },
  })
  expect((await create('template:same')).status).toBe(201)
  expect((await create('snapshot:same')).status).toBe(201)
  expect(await create('snapshot:none')).toMatchObject({ status: 404, code: 'snapshot_unknown' })
  expect(await create('template:none')).toMatchObject({ status: 404, code: 'template_unknown' })
  expect(await create('template:')).toMatchObject({ status: 404, code: 'image_unknown' })
  expect(await create('none')).toMatchObject({ status: 404, code: 'image_unknown' })
})
