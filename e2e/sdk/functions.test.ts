/** Functions among the steps of `prepare`. */
import type { PrepareOptions, Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startFakeDaemon } from './fake-daemon.ts'

type Step = Exclude<NonNullable<PrepareOptions['setup']>[number], string | readonly string[]>

/** A function that writes a file, and how often it ran. */
function writing(key: string) {
  const ran: string[] = []
  const run: Step['run'] = async ({ sandbox }) => {
    ran.push(sandbox.id)
    await sandbox.files.write(`/${key}`, `${ran.length}`)
  }
  return { ran, step: { key, run } }
}

async function snapshots(client: Sandlot) {
  return await Array.fromAsync(client.snapshots.list({ all: true }))
}

test('one runs once, whoever asks and however many at once, for the same template', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const { ran, step } = writing('once')
  const all = await Promise.all(
    Array.from({ length: 4 }, () => daemon.client().prepare({ from, setup: [step, 'true'] })),
  )
  expect(new Set(all.map(({ id }) => id)).size).toBe(1)
  expect((await daemon.client().prepare({ from, setup: [step, 'true'] })).id).toBe(all[0]?.id)
  expect(ran).toHaveLength(1)
  await using sandbox = await daemon.client().sandboxes.create({ from: all[0]?.id ?? '' })
  expect((await sandbox.view()).image).toBe(all[0]?.image)
})

test('with another network or other resources it runs again, and sees those', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const client = daemon.client()
  const seen: unknown[] = []
  const run: Step['run'] = async ({ sandbox }) => {
    const { network, resources, owner } = await sandbox.view()
    seen.push([network.allows.agent, resources.memory.limit, owner])
  }
  const setup = [{ key: 'look', run }]
  for (const more of [{}, { network: 'none' as const }, { resources: { memory: '256MiB' } }, {}]) {
    await client.prepare({ from, setup, ...more })
  }
  expect(seen).toEqual([
    ['packages', 2 ** 30, 'build'],
    ['none', 2 ** 30, 'build'],
    ['packages', 2 ** 28, 'build'],
  ])
})

test('what it made goes with the template that needed it', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const client = daemon.client()
  const [one, other] = [writing('one'), writing('two')]
  const { id } = await client.prepare({ from, setup: [one.step, 'true', other.step] })
  expect(await snapshots(client)).toEqual([])
  await client.images.prune({ all: true })
  expect((await client.prepare({ from, setup: [one.step, 'true', other.step] })).id).toBe(id)
  expect([one.ran, other.ran]).toEqual([[expect.anything()], [expect.anything()]])
  await client.templates.delete(id)
  await client.images.prune({ all: true })
  expect(await Array.fromAsync(client.images.list())).toEqual([])
  expect(await snapshots(client)).toEqual([])
  expect(await Array.fromAsync(client.sandboxes.list())).toEqual([])
})

test('what it throws is what the caller gets, and nothing of it is kept', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const client = daemon.client()
  const thrown = new TypeError('no such table')
  const run = async () => {
    throw thrown
  }
  const asked = client.prepare({ from, setup: ['true', { key: 'broken', run }, 'true'] })
  await expect(asked).rejects.toBe(thrown)
  const { ran, step } = writing('broken')
  const lines: string[] = []
  await client.prepare({ from, setup: ['true', step, 'true'], onLog: (line) => lines.push(line) })
  expect(ran).toHaveLength(1)
  expect(lines).toContain('step 2 of 3: function broken')
  expect(await Array.fromAsync(client.sandboxes.list())).toEqual([])
})

test('one that waits while another’s fails has its own turn', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const begun = Promise.withResolvers<void>()
  const waiting = Promise.withResolvers<void>()
  const run = async () => {
    begun.resolve()
    await waiting.promise
    throw new Error('mine alone')
  }
  const { ran, step } = writing('shared')
  const first = daemon.client().prepare({ from, setup: [{ key: 'shared', run }] })
  first.catch(() => {})
  // Whose request comes first, runs.
  await Promise.race([begun.promise, first])
  const second = daemon.client().prepare({
    ...{ from, setup: [step] },
    onLog: () => waiting.resolve(),
  })
  await expect(first).rejects.toThrow('mine alone')
  await second
  expect(ran).toHaveLength(1)
})

test('a sandbox that dies under it fails it, and a daemon that restarts begins it again', async () => {
  await using daemon = await startFakeDaemon({ script: () => ({ dies: 'oom_limit' }) })
  const { id: from } = await daemon.image()
  const client = daemon.client()
  const dying: Step['run'] = ({ sandbox }) => sandbox.exec('eat')
  await expect(client.prepare({ from, setup: [{ key: 'a', run: dying }] })).rejects.toMatchObject({
    code: 'sandbox_gone',
  })
  const quiet: Step['run'] = ({ sandbox }) => sandbox.exec('eat').catch(() => {})
  await expect(client.prepare({ from, setup: [{ key: 'a', run: quiet }] })).rejects.toMatchObject({
    message: expect.stringContaining('step 1 of 1 (function a)'),
  })
  let runs = 0
  const run: Step['run'] = async ({ sandbox }) => {
    runs += 1
    if (runs === 1) await daemon.restart()
    await sandbox.files.write('/made', 'x')
  }
  const template = await client.prepare({ from, setup: [{ key: 'b', run }] })
  expect([runs, template.kind]).toEqual([2, 'filesystem'])
})

test('who gives up is let go at once, and the sandbox ends', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const client = daemon.client()
  const leaver = new AbortController()
  const run = async () => {
    leaver.abort(new Error('enough'))
    await new Promise(() => {})
  }
  const { signal } = leaver
  await expect(
    client.prepare({ from, setup: [{ key: 'hangs', run }], signal }),
  ).rejects.toMatchObject({ message: 'enough' })
  for (let left = 1; left > 0; ) left = (await Array.fromAsync(client.sandboxes.list())).length
})
