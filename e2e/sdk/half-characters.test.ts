import { expect, test } from 'vitest'
import { startFakeDaemon } from './fake-daemon.ts'

const HALF = 'a\ud83d'

test('half a character is refused wherever it stands, and never becomes another one', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const { id: from } = await daemon.image()
  await using sandbox = await client.sandboxes.create({ from })
  const { files } = sandbox
  const asked: Readonly<Record<string, () => Promise<unknown>>> = {
    command: () => sandbox.exec(HALF),
    'command.1': () => sandbox.exec(['echo', HALF]),
    'env.A': () => sandbox.exec('true', { env: { A: HALF } }),
    '"env.a\\ud83d"': () => sandbox.exec('true', { env: { [HALF]: '1' } }),
    cwd: () => sandbox.exec('true', { cwd: `/${HALF}` }),
    user: () => sandbox.exec('true', { user: HALF }),
    path: () => files.write(`/${HALF}`, 'text'),
    name: () => client.rollouts.get(HALF),
    id: () => client.images.get(HALF),
    'tag.0': () => client.sandboxes.list({ tags: { [HALF]: '' } }).next(),
  }
  for (const [at, ask] of Object.entries(asked)) {
    await expect(ask(), at).rejects.toMatchObject({
      code: 'invalid_request',
      message: `${at}: holds half a character (a lone surrogate)`,
    })
  }
  await expect(files.readText(`/${HALF}`)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(files.stat(`/${HALF}`)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(client.sandboxes.create({ from, env: { A: HALF } })).rejects.toMatchObject({
    code: 'invalid_request',
  })
})
