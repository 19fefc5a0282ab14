import { LIMITS } from '@sandlot/protocol'
import { type EpisodeContext, type ResultRow, Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'

const byKey = (rows: readonly ResultRow[]) => Object.fromEntries(rows.map((row) => [row.key, row]))
const names = (row: ResultRow | undefined) => row?.artifacts.map(({ name }) => name)

test('files that match are artifacts of each episode, however it ended', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const write = async ({ sandbox, key }: EpisodeContext<{ id: string }>) => {
    for (const path of ['a.json', 'deep/er/b.json', 'deep/c.txt', '.hidden.json']) {
      await sandbox.files.write(`/work/out/${path}`, `${key} ${path}`)
    }
    await sandbox.files.write('/named', key)
    await sandbox.files.write('/elsewhere.json', key)
  }
  const run = client.rollouts.map(
    ['good', 'throws', 'late', 'nothing'].map((id) => ({ id })),
    async (context) => {
      if (context.key !== 'nothing') await write(context)
      if (context.key === 'throws') throw new Error('as planned')
      if (context.key === 'late') await new Promise(() => {})
      if (context.key === 'good') await context.artifact('/named', 'its own')
      return { reward: 1 }
    },
    {
      ...{ from: await at.image() },
      // Of the one that is late alone, with time enough for what it leaves.
      each: ({ id }) => (id === 'late' ? { timeout: { agent: '5s' } } : {}),
      artifacts: ['/work/out/**/*.json', '/named', '/nothing/is/*', '/work/out/*.json'],
    },
  )
  const rows = byKey(await run.wait())
  const found = ['/work/out/a.json', '/work/out/deep/er/b.json', '/named']
  expect(names(rows.good)).toEqual(['/named', ...found.slice(0, 2)])
  expect(names(rows.throws)).toEqual(found)
  expect(names(rows.late)).toEqual(found)
  expect(names(rows.nothing)).toEqual([])
  expect(Object.values(rows).map(({ leftOut }) => leftOut)).toEqual([[], [], [], []])
  expect(rows.late).toMatchObject({ outcome: 'agent_timeout' })
  const text = async (key: string, name: string) =>
    Buffer.from(await run.artifact(rows[key] as ResultRow, name)).toString()
  expect(await text('late', '/work/out/deep/er/b.json')).toBe('late deep/er/b.json')
  expect(await text('good', '/named')).toBe('its own')
})

test('what is too much is left out, and the row says so', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const many = LIMITS.collectedFiles + 30
  const run = client.rollouts.map(
    [{ id: 'many' }, { id: 'odd' }],
    async ({ sandbox, key }) => {
      if (key === 'odd') {
        await sandbox.files.write('/out/two\nlines', 'x')
        await sandbox.files.write(
          `/out/${'n'.repeat(200)}/${'n'.repeat(200)}/${'n'.repeat(200)}`,
          'x',
        )
        await sandbox.files.makeDirectory('/out/directory')
      } else {
        for (let n = 0; n < many; n++) {
          await sandbox.files.write(`/out/${String(n).padStart(3, '0')}`, `${n}`)
        }
      }
      return { reward: 1 }
    },
    { from: await at.image(), artifacts: ['/out/**', '/out/directory'] },
  )
  const rows = byKey(await run.wait())
  expect(rows.many?.artifacts).toHaveLength(LIMITS.collectedFiles)
  expect(rows.many?.leftOut).toHaveLength(LIMITS.leftOut)
  expect(rows.many?.leftOut[0]).toBe('/out/064: more than 64 files match')
  expect(rows.many?.leftOut.at(-1)).toBe('… and 15 more')
  expect(names(rows.odd)).toEqual([])
  expect(rows.odd?.leftOut).toHaveLength(3)
  expect(rows.odd?.leftOut.at(-1)).toContain('/out/directory/** is what is below it')
})

test('patterns and numbers that can’t be are refused', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const from = await at.image()
  const wrong = [
    { artifacts: ['out/*'] },
    { artifacts: [] },
    { artifacts: ['/a\0b'] },
    { artifacts: Array.from({ length: LIMITS.artifactPatterns + 1 }, (_, n) => `/${n}`) },
    { keep: 0 },
    { keep: LIMITS.kept + 1 },
    { keep: 'sometimes' as never },
  ]
  for (const options of wrong) {
    const run = client.rollouts.map([1], async () => ({ reward: 1 }), { from, ...options })
    await expect(run.wait()).rejects.toMatchObject({ code: 'invalid_request', hint: /./ })
  }
})

test('a sandbox can be started from what a failed episode left, until the run is deleted', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const run = client.rollouts.map(
    ['good', 'bad', 'worse'].map((id) => ({ id })),
    async ({ key, sandbox }) => {
      await sandbox.files.write('/state', key)
      if (key !== 'good') throw new Error(`${key} as planned`)
      return { reward: 1 }
    },
    { from: await at.image(), concurrency: 1, keep: 1 },
  )
  const rows = byKey(await run.wait())
  expect([rows.good?.kept, rows.worse?.kept]).toEqual([null, null])
  const kept = rows.bad?.kept ?? ''
  expect(kept).toMatch(/^sn_/)
  {
    await using sandbox = await client.sandboxes.create({ from: kept })
    expect((await sandbox.view()).state).toBe('running')
  }
  const listed = async (all: boolean) =>
    (await Array.fromAsync(client.snapshots.list({ all }))).map(({ id, tags }) => [id, tags])
  expect(await listed(false)).toEqual([])
  expect(await listed(true)).toEqual([[kept, { run: run.name, key: 'bad' }]])
  await run.delete()
  expect(await listed(true)).toEqual([])
})
