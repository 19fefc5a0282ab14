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
