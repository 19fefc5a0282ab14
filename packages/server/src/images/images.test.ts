import { createHash } from 'node:crypto'
import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const linesOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

async function upload(at: TestDaemon, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = digestOf(bytes)
  expect((await at.ask('PUT', `/v1/blobs/${digest}`, { body: bytes })).status).toBe(201)
  return digest
}

test('an image is built from an uploaded tar, once for all who ask at the same time', async () => {
  await using at = await startTestDaemon()
  const blob = await upload(at, smallTar('a', 'b'))
  const build = () => at.ask('POST', '/v1/images', { json: { kind: 'tar', blob } })
  const built = await Promise.all([build(), build(), build()])
  const last = built.map(({ text }) => linesOf(text).at(-1))
  expect(new Set(last.map(({ image }) => image.id)).size).toBe(1)
  expect(last[0]).toMatchObject({ kind: 'done', image: { source: { kind: 'tar', blob } } })
  const { id } = last[0].image
  expect((await at.ask('GET', `/v1/images/${id}`)).json).toMatchObject(last[0].image)
  const listed = (await at.ask('GET', '/v1/images')).json as { items: unknown[] }
  expect(listed.items).toMatchObject([last[0].image])
})

test('a build that fails says so in its last line', async () => {
  await using at = await startTestDaemon()
  const build = async (json: unknown) =>
    linesOf((await at.ask('POST', '/v1/images', { json })).text).at(-1)
  expect(await build({ kind: 'tar', blob: digestOf(Buffer.from('nobody has it')) })).toMatchObject({
    kind: 'error',
    error: { code: 'blob_unknown', hint: expect.any(String) },
  })
  const blob = await upload(at, new Uint8Array(1_024).fill(7))
  expect(await build({ kind: 'tar', blob })).toMatchObject({
    kind: 'error',
    error: { code: 'image_source_invalid', fault: 'caller' },
  })
})

test('an image that a sandbox was made from is kept until that ends', async () => {
  await using at = await startTestDaemon()
  const { id, image } = await at.sandbox()
  const remove = () => at.ask('DELETE', `/v1/images/${image}`)
  expect(await remove()).toMatchObject({ status: 409, code: 'image_in_use' })
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  const removed = await remove()
  expect(removed).toMatchObject({ status: 200, json: { removed: [image] } })
  expect((removed.json as { freedBytes: number }).freedBytes).toBeGreaterThan(0)
  expect(await remove()).toMatchObject({ status: 404, code: 'image_unknown' })
  expect((await at.ask('GET', `/v1/images/${newId('image')}`)).code).toBe('image_unknown')
})

test('contents are there under their digest, or not at all', async () => {
  await using at = await startTestDaemon()
  const bytes = Buffer.from('some content')
  const path = `/v1/blobs/${digestOf(bytes)}`
  expect((await at.ask('HEAD', path)).status).toBe(404)
  expect((await at.ask('GET', path)).code).toBe('blob_unknown')
  const other = await at.ask('PUT', path, { body: 'other content' })
  expect(other).toMatchObject({ status: 422, code: 'digest_mismatch' })
  expect((await at.ask('PUT', path, { body: bytes })).json).toEqual({
    digest: digestOf(bytes),
    sizeBytes: bytes.length,
  })
  const head = await at.ask('HEAD', path)
  expect(head.status).toBe(200)
  expect(head.headers.get('content-length')).toBe(String(bytes.length))
  expect((await at.ask('GET', path)).text).toBe('some content')
})
