import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxView, TemplateView } from '@sandlot/protocol'
import type { FakeScript } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'
import { until } from '../testing/until.ts'

const LISTENS = '   6: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n'

/** A server that listens on port 8000 from the third time that somebody asks. */
function server(more: FakeScript = () => ({})) {
  let asked = 0
  const script: FakeScript = (command) => {
    const { argv, files } = command
    if (argv[0] === 'serve') {
      files.put('/served', 'yes')
      return { hangs: true, stdout: 'serving\n' }
    }
    if (argv[0] === 'cat') return { stdout: ++asked < 3 ? '' : LISTENS }
    return more(command)
  }
  return { capabilities: { memorySnapshot: true }, script, daemon: { poolTarget: 0 } }
}

async function prepare(at: TestDaemon, more: object) {
  const bytes = smallTar('a', 'content')
  const blob = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  await at.ask('PUT', `/v1/blobs/${blob}`, { body: bytes })
  const json = { source: { kind: 'tar', blob }, snapshot: 'memory', ...more }
  const { text } = await at.ask('POST', '/v1/templates', { json })
  return JSON.parse(text.trim().split('\n').at(-1) ?? '') as {
    readonly kind: string
    readonly template: TemplateView
    readonly error: { readonly code: string; readonly message: string }
  }
}

const saved = async (at: TestDaemon) =>
  await readdir(join(at.directories.dataDirectory, 'checkpoints'))

test('a template with memory is what start began, once it was ready', async () => {
  await using at = await startTestDaemon(server())
  const wanted = { start: ['serve'], ready: { port: 8000 }, resources: { pids: 32 } }
  const { template } = await prepare(at, wanted)
  expect(template).toMatchObject({ kind: 'memory', snapshot: expect.stringMatching(/^sn_/) })
  expect((await prepare(at, wanted)).template).toEqual(template)
  expect(await saved(at)).toHaveLength(1)
  expect(at.driver.machine.size).toBe(0)
  const created = await at.ask('POST', '/v1/sandboxes', { json: { from: template.id } })
  expect(created.json).toMatchObject({ origin: 'restored', resources: { pids: 32 } })
  const { id } = created.json as SandboxView
  expect((await at.ask('GET', `/v1/sandboxes/${id}/files?path=/served`)).text).toBe('yes')
  const snapshot = `/v1/snapshots/${template.snapshot}`
  expect(await at.ask('DELETE', snapshot)).toMatchObject({ code: 'snapshot_in_use' })
  expect((await at.ask('DELETE', `/v1/templates/${template.id}`)).status).toBe(204)
  expect(await saved(at)).toEqual([])
})

test('a template that is prepared finds copies restored ahead', async () => {
  await using at = await startTestDaemon({ ...server(), daemon: { poolTarget: 2 } })
  const { template } = await prepare(at, { start: ['serve'] })
  const waiting = () =>
    at.driver.machine.all().filter(({ restored, dressed }) => restored && !dressed)
  await until(() => waiting().length === 2)
  const created = await at.ask('POST', '/v1/sandboxes', { json: { from: template.id } })
  expect(created.json).toMatchObject({ origin: 'restored-ahead' })
  await at.ask('DELETE', `/v1/sandboxes/${(created.json as SandboxView).id}`)
  expect((await at.ask('DELETE', `/v1/templates/${template.id}`)).status).toBe(204)
  expect(waiting()).toEqual([])
  expect(await saved(at)).toEqual([])
})

test('a template whose memory was deleted is prepared again', async () => {
  await using at = await startTestDaemon(server())
  const { template } = await prepare(at, { start: ['serve'] })
  await at.ask('DELETE', `/v1/snapshots/${template.snapshot}?force=true`)
  const from = { json: { from: template.id } }
  expect(await at.ask('POST', '/v1/sandboxes', from)).toMatchObject({ code: 'snapshot_unknown' })
  expect((await prepare(at, { start: ['serve'] })).template.id).toBe(template.id)
  expect((await at.ask('POST', '/v1/sandboxes', from)).status).toBe(201)
})

test('a template whose memory can not be restored here any more is prepared again', async () => {
  await using at = await startTestDaemon(server())
  const wanted = { start: ['serve'], name: 'box' }
  const { template } = await prepare(at, wanted)
  const before = await saved(at)
  const { checkpoints } = at.driver.machine
  for (const [directory, checkpoint] of checkpoints) {
    const facts = { ...checkpoint.facts, runtime: 'another' }
    checkpoints.set(directory, { ...checkpoint, facts })
  }
  const from = { json: { from: template.id } }
  expect(await at.ask('POST', '/v1/sandboxes', from)).toMatchObject({
    code: 'snapshot_incompatible',
  })
  expect((await prepare(at, wanted)).template.id).toBe(template.id)
  expect((await at.ask('POST', '/v1/sandboxes', from)).status).toBe(201)
  expect(await saved(at)).toHaveLength(1)
  expect(await saved(at)).not.toEqual(before)
})

test('what takes more memory than there is says so, and not that a sandbox is gone', async () => {
  const begun = Promise.withResolvers<void>()
  await using at = await startTestDaemon(
    server(() => {
      begun.resolve()
      return { exitCode: 1 }
    }),
  )
  const preparing = prepare(at, { start: ['serve'], ready: { command: ['no'] } })
  await begun.promise
  for (const { hostId } of at.driver.machine.all()) at.driver.kill(hostId, 'oom_limit')
  const { error } = await preparing
  expect(error).toMatchObject({ code: 'image_build_failed' })
  expect(error.message).toBe('what start began took more than 1 GiB of memory')
})

test('what never gets ready leaves nothing, and says what start said', async () => {
  await using at = await startTestDaemon(
    server(({ argv }) =>
      argv[0] === 'breaks' ? { exitCode: 3, stderr: 'no such port\n' } : { exitCode: 1 },
    ),
  )
  const late = await prepare(at, {
    start: ['serve'],
    ready: { command: ['no'] },
    readyTimeout: '1s',
  })
  expect(late.error).toMatchObject({ code: 'image_build_failed' })
  expect(late.error.message).toContain('start said: serving')
  const broken = await prepare(at, { start: ['breaks'], ready: { command: ['no'] } })
  expect(broken.error.message).toContain('start ended (exit 3); start said: no such port')
  expect(await saved(at)).toEqual([])
  expect((await at.ask('GET', '/v1/templates')).json).toMatchObject({ items: [] })
  expect(at.driver.machine.size).toBe(0)
})
