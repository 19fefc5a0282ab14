/** What can't be is refused before an image is built for it: the one that is described here can't even be read. */
import { Image } from 'sandlot'
import { expect, test, vi } from 'vitest'
import { startFakeDaemon } from './fake-daemon.ts'

const from = Image.directory('/nothing/is/here')

const COMMON: readonly (readonly [object, RegExp])[] = [
  [{ resources: { memory: 'lots' } }, /^resources\.memory: "lots" is not a size/],
  [{ resources: { pids: 1 } }, /^resources\.pids: /],
  [{ resources: { memory: '1MiB' } }, /^resources\.memory: .* below the least, 96MiB/],
  [{ resources: { disk: '0B' } }, /^resources\.disk: below the least, 1MiB/],
  [{ resources: { disk: '1EiB' } }, /^resources\.disk: "1EiB" is not a size .*TiB/],
  [{ env: { 'A=B': '1' } }, /^env\.A=B: /],
  [{ user: '' }, /^user: /],
  [{ workdir: '' }, /^workdir: /],
  [{ tags: { '': 'x' } }, /^tags\.: /],
]

test.each([
  ...COMMON,
  [{ network: { allow: ['http://example.org'] } }, /^network\.allow\.0: /],
  [{ keepWarm: '1ms' }, /^keepWarm: shorter than/],
  [{ lifetime: 'soon' }, /^lifetime: "soon" is not a duration/],
  [{ memory: '1GiB' }, /"memory"/],
] as const)('sandboxes.create: %j', async (options, message) => {
  await using daemon = await startFakeDaemon()
  await expect(
    daemon.client().sandboxes.create({ from, ...options } as never),
  ).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
})

test.each([
  ...COMMON,
  [{ network: { allow: ['http://example.org'] } }, /^network\.allow\.0: /],
  [{ name: '' }, /^name: /],
  [{ start: 'server' }, /belong to a memory snapshot/],
  [{ snapshot: 'memory', ready: { port: 0 } }, /^ready\.port: /],
  [{ setup: ['true', ''] }, /^setup\.1: /],
  [{ setup: ['true', 3] }, /neither a command nor a function/],
] as const)('prepare: %j', async (options, message) => {
  await using daemon = await startFakeDaemon()
  const run = vi.fn(async () => {})
  const first = { key: 'first', run }
  const { setup = [], ...rest } = { setup: [] as readonly unknown[], ...options }
  const asked = { from, ...rest, setup: [...setup, first] }
  await expect(daemon.client().prepare(asked as never)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(message),
  })
  expect(run).not.toHaveBeenCalled()
})

test.each([
  ...COMMON,
  [{ network: { agent: { allow: ['http://example.org'] } } }, /^network\.agent\.allow\.0: /],
  [{ name: 'a/b' }, /^name: /],
  [{ timeout: { agent: 'soon' } }, /^timeout\.agent: /],
  [{ concurrency: 0 }, /^concurrency: /],
  [{ setup: [''] }, /^setup\.0: /],
] as const)('rollouts.map: %j', async (options, message) => {
  await using daemon = await startFakeDaemon()
  const run = daemon.client().rollouts.map(['a'], async () => {}, { from, ...options } as never)
  await expect(run.wait()).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(message),
  })
})

test('what is right is built, and fails there', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const failed = { message: expect.stringContaining('/nothing/is/here') }
  const resources = { memory: '2GiB', disk: '1GiB', cpu: 0.5, pids: 9 }
  await expect(client.sandboxes.create({ from, resources })).rejects.toMatchObject(failed)
  await expect(client.prepare({ from, resources })).rejects.toMatchObject(failed)
  const run = client.rollouts.map(['a'], async () => {}, { from, resources })
  await expect(run.wait()).rejects.toMatchObject(failed)
})
