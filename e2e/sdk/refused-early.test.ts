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
  [{ setup: ['true', 3] }, /^setup\.1: neither a command nor a function/],
  [{ setup: [{ key: '', run: async () => {} }] }, /^setup\.0\.key: /],
  [{ files: ['./repo'] }, /^files: .*expected record/],
  [{ onrestore: 'true' }, /^Unrecognized key: "onrestore"/],
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

test('a set-up that is no list is refused', async () => {
  await using daemon = await startFakeDaemon()
  const asked = daemon.client().prepare({ from, setup: 'make' } as never)
  await expect(asked).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/^setup: .*expected array/),
  })
})

test('an option that nothing knows is refused by name, wherever it is given', async () => {
  await using daemon = await startFakeDaemon()
  const client = daemon.client()
  const bad = { bogus: 1 } as never
  const { id } = await daemon.image()
  const sandbox = await client.sandboxes.create({ from: id })
  const run = client.rollouts.map(['a'], async () => {}, { from: id })
  const calls: Record<string, () => unknown> = {
    exec: () => sandbox.exec('true', bad),
    'streamed exec': () => sandbox.exec('true', { stream: true, ...(bad as object) }).result,
    fork: () => sandbox.fork(1, bad),
    read: () => sandbox.files.read('/etc/empty', bad),
    write: () => sandbox.files.write('/x', 'x', bad),
    stat: () => sandbox.files.stat('/', bad),
    remove: () => sandbox.files.remove('/x', bad),
    makeDirectory: () => sandbox.files.makeDirectory('/x', bad),
    sandboxes: () => Array.fromAsync(client.sandboxes.list(bad)),
    stopAll: () => client.sandboxes.stopAll(bad),
    snapshots: () => Array.fromAsync(client.snapshots.list(bad)),
    templates: () => Array.fromAsync(client.templates.list(bad)),
    build: () => client.images.build(Image.fromId(id), bad),
    step: () => client.images.build(Image.fromId(id).run('true', bad)),
    dockerfile: () => client.images.build(Image.dockerfile('./Dockerfile', bad)),
    export: () => Array.fromAsync(client.images.export(id, bad)),
    prune: () => client.images.prune(bad),
    results: () => Array.fromAsync(run.results(bad)),
    groups: () => Array.fromAsync(run.groups(bad)),
    batch: () => run.batch(1, bad),
  }
  for (const [name, call] of Object.entries(calls)) {
    const refused = (async () => await call())()
    await expect(refused, name).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'there is no option "bogus"',
      hint: expect.stringMatching(/^There are /),
    })
  }
  const allOrNothing = client.sandboxes.stopAll({} as never)
  await expect(allOrNothing).rejects.toMatchObject({ message: expect.stringMatching(/^tags: /) })
  expect((await sandbox.view()).state).toBe('running')
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
