import { createHash } from 'node:crypto'
import type { BuildStep } from '@sandlot/protocol'
import type { FakeScript } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'

const script: FakeScript = ({ argv, files }) => {
  const text = argv.at(-1) ?? ''
  if (text === 'greedy') return { dies: 'oom_limit' }
  if (text === 'crash') return { dies: 'lost' }
  if (text === 'hang') return { hangs: true }
  if (text === 'fail') return { exitCode: 4, stdout: 'what went wrong\n' }
  files.put('/made', text)
  return { stdout: `${text} is done\n` }
}

interface Line {
  readonly kind: string
  readonly line?: string
  readonly image?: { readonly id: string }
  readonly error?: { readonly code: string; readonly message: string; readonly details?: unknown }
}

async function build(at: TestDaemon, commands: string[], signal?: AbortSignal): Promise<Line[]> {
  const tar = smallTar('etc/motd', 'hello\n')
  const blob = `sha256:${createHash('sha256').update(tar).digest('hex')}`
  await at.ask('PUT', `/v1/blobs/${blob}`, { body: tar })
  const steps = commands.map((command): BuildStep => ({ kind: 'run', command, network: 'none' }))
  const json = { kind: 'built', base: { kind: 'tar', blob }, steps }
  const { text } = await at.ask('POST', '/v1/images', { json, ...(signal ? { signal } : {}) })
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

test('steps run in sandboxes of the node, which no list shows, and which are gone afterwards', async () => {
  const listed: unknown[] = []
  const running = Promise.withResolvers<TestDaemon>()
  await using at = await startTestDaemon({
    script: async (command) => {
      const { json } = await (await running.promise).ask('GET', '/v1/sandboxes')
      listed.push((json as { items: unknown[] }).items)
      return await script(command)
    },
  })
  running.resolve(at)
  const lines = await build(at, ['one', 'two'])
  expect(lines.map(({ line }) => line).filter((line) => line?.includes('done'))).toEqual([
    '[1/2] one is done',
    '[2/2] two is done',
  ])
  expect(lines.at(-1)).toMatchObject({ kind: 'done' })
  expect(listed).toEqual([[], []])
  expect((await at.ask('GET', '/v1/images')).json).toMatchObject({
    items: [{ source: { kind: 'tar' } }, { id: lines.at(-1)?.image?.id }],
  })
  expect((await build(at, ['one', 'two'])).map(({ kind }) => kind)).toEqual(['done'])
  expect(listed).toHaveLength(2)
})

test('a step that fails, takes all memory, or loses its sandbox says so in its own way', async () => {
  await using at = await startTestDaemon({ script })
  expect((await build(at, ['one', 'fail'])).at(-1)).toMatchObject({
    kind: 'error',
    error: {
      code: 'image_build_failed',
      message: expect.stringContaining('step 2 of 2 (run fail)'),
      details: { exitCode: 4, log: ['what went wrong'] },
    },
  })
  expect((await build(at, ['greedy'])).at(-1)).toMatchObject({
    kind: 'error',
    error: { code: 'image_build_failed', message: expect.stringContaining('of memory') },
  })
  expect((await build(at, ['crash'])).at(-1)).toMatchObject({
    kind: 'error',
    error: { code: 'sandbox_lost' },
  })
})

test('a build goes on for its other client where the first one leaves', async () => {
  const [began, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let runs = 0
  await using at = await startTestDaemon({
    script: async () => {
      runs += 1
      began.resolve()
      await ends.promise
      return {}
    },
  })
  const leaver = new AbortController()
  const first = build(at, ['slow'], leaver.signal)
  first.catch(() => {})
  await began.promise
  const second = build(at, ['slow'])
  leaver.abort()
  await expect(first).rejects.toThrow()
  ends.resolve()
  expect((await second).at(-1)).toMatchObject({ kind: 'done' })
  // The first one's leaving may have ended its run before the second one came.
  expect(runs).toBeLessThanOrEqual(2)
})

test('what nothing uses is pruned, and what it was is said', async () => {
  await using at = await startTestDaemon({ script })
  const last = (await build(at, ['one', 'two'])).at(-1)
  const prune = async (json: unknown) => (await at.ask('POST', '/v1/images/prune', { json })).json
  expect(await prune({ what: 'intermediate' })).toMatchObject({ removed: [expect.any(String)] })
  const { id } = (await at.ask('POST', '/v1/sandboxes', { json: { from: last?.image?.id } }))
    .json as { id: string }
  const { removed } = (await prune({ what: 'all' })) as { removed: string[] }
  expect(removed).toHaveLength(1)
  expect(removed).not.toContain(last?.image?.id)
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  expect(await prune({ what: 'all', keep: '1TiB' })).toMatchObject({ removed: [] })
  expect(await prune({ what: 'all' })).toMatchObject({ removed: [last?.image?.id] })
})

test('a build begins at what a template starts from, in its own project', async () => {
  await using at = await startTestDaemon({ script })
  const from = await at.image()
  const prepared = await at.ask('POST', '/v1/templates', {
    json: { source: { kind: 'id', id: from } },
  })
  const { template } = JSON.parse(prepared.text.trim().split('\n').at(-1) ?? '')
  const over = async (id: string): Promise<Line> => {
    const steps = [{ kind: 'run', command: 'one', network: 'none' }]
    const json = { kind: 'built', base: { kind: 'id', id }, steps }
    const { text } = await at.ask('POST', '/v1/images', { json })
    return JSON.parse(text.trim().split('\n').at(-1) ?? '')
  }
  expect(await over(template.id)).toMatchObject({
    kind: 'done',
    image: { source: { base: { kind: 'id', id: from } } },
  })
  const code = async (id: string) => (await over(id)).error?.code
  expect(await code(`tp_${'a'.repeat(20)}`)).toBe('template_unknown')
  expect(await code(`sn_${'a'.repeat(20)}`)).toBe('snapshot_unknown')
})

test('an image is verified, and goes out as an archive', async () => {
  await using at = await startTestDaemon({ script })
  const id = (await build(at, ['one'])).at(-1)?.image?.id
  expect((await at.ask('POST', `/v1/images/${id}/verify`)).json).toEqual({ problems: [] })
  const archive = await at.fetch('GET', `/v1/images/${id}/export?format=tar`)
  expect(archive.headers.get('content-type')).toBe('application/x-tar')
  expect(Buffer.from(await archive.arrayBuffer()).includes('etc/motd')).toBe(true)
  const missing = `im_${'a'.repeat(20)}`
  for (const [method, path] of [
    ['POST', `/v1/images/${missing}/verify`],
    ['GET', `/v1/images/${missing}/export`],
  ] as const) {
    expect((await at.ask(method, path)).code).toBe('image_unknown')
  }
})

test('sources that lie too deep in one another are refused', async () => {
  await using at = await startTestDaemon({ script })
  let source = '{"kind":"tar","blob":"x"}'
  for (let depth = 0; depth < 5_000; depth++) {
    source = `{"kind":"built","steps":[],"base":${source}}`
  }
  const headers = { 'content-type': 'application/json' }
  const { status, text } = await at.ask('POST', '/v1/images', { body: source, headers })
  expect([status < 500, text]).toEqual([true, expect.stringMatching(/deep|invalid/)])
})
