import { expect, test } from 'vitest'
import { startFakeDaemon } from './fake-daemon.ts'

test.each([[{}], [{ from: null }], [{ from: 3 }]])(
  '%j is nothing to start from',
  async (options) => {
    await using daemon = await startFakeDaemon()
    await expect(daemon.client().sandboxes.create(options as never)).rejects.toMatchObject({
      code: 'invalid_request',
      hint: expect.stringContaining('Image.debian('),
    })
  },
)

test('a name of an image is answered with how to describe it', async () => {
  await using daemon = await startFakeDaemon()
  await expect(daemon.client().sandboxes.create({ from: 'bookworm' })).rejects.toMatchObject({
    code: 'image_unknown',
    hint: expect.stringContaining("Image.debian('bookworm')"),
  })
})

test('a snapshot and a template are started from by their names', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const { id: from } = await daemon.image()
  await using sandbox = await client.sandboxes.create({ from })
  await sandbox.files.write('/new', 'x')
  const snapshot = await sandbox.snapshot({ kind: 'filesystem', name: 'warm' })
  const template = await client.prepare({
    name: 'env/v1',
    from: 'snapshot:warm',
    setup: [{ key: 'v1', run: ({ sandbox }) => sandbox.files.write('/newer', 'y') }],
  })
  await using next = await client.sandboxes.create({ from: 'template:env/v1' })
  expect((await next.view()).image).toBe(template.image)
  expect(await client.snapshots.get('warm')).toMatchObject(snapshot)
  expect((await client.templates.get('env/v1')).id).toBe(template.id)
  const listed = await Array.fromAsync(client.snapshots.list())
  expect(listed.map(({ id }) => id)).toEqual([snapshot.id])
  expect(await Array.fromAsync(client.snapshots.list({ all: true }))).toHaveLength(1)
  await client.templates.delete('env/v1')
  await expect(client.sandboxes.create({ from: 'env/v1' })).rejects.toMatchObject({
    code: 'image_unknown',
  })
})
