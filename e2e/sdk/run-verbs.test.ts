/** `sandlot runs …` and `sandlot episode`, against a daemon on sandboxes in memory. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CommandEnd, runCommand } from '../harness/command.ts'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
let directory: string
beforeAll(async () => {
  daemon = await startFakeDaemon()
  directory = await mkdtemp(join(tmpdir(), 'sandlot-verbs-'))
})
afterAll(async () => {
  await daemon[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

function sandlot(...argv: string[]): Promise<CommandEnd> {
  const { url, apiKey } = daemon
  return runCommand(argv, { environment: { SANDLOT_URL: url, SANDLOT_API_KEY: apiKey } })
}

const tasksOf = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `t${n}` }))

test('runs are listed, the newest first, and by their state', async () => {
  const client = daemon.client()
  const from = await daemon.image()
  for (const name of ['z-first', 'a-second']) {
    await client.rollouts.map(tasksOf(1), async () => ({ reward: 1 }), { name, from }).wait()
  }
  const open = client.rollouts.open('m-third', async () => ({ reward: 1 }), { from })
  await open.created
  const names = ({ stdout }: CommandEnd) =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[0])
  expect(names(await sandlot('runs', 'list'))).toEqual(['NAME', 'm-third', 'a-second', 'z-first'])
  expect(names(await sandlot('runs', 'list', '--state', 'open'))).toEqual(['NAME', 'm-third'])
  const json = JSON.parse((await sandlot('runs', 'list', '--json')).stdout)
  expect(json.map(({ name }: { name: string }) => name)).toEqual(['m-third', 'a-second', 'z-first'])
  const wrong = await sandlot('runs', 'list', '--state', 'gone')
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('not one of open') })
  await open.cancel()
})

test('an episode says why it is late, and why it failed', async () => {
  const client = daemon.client()
  const gates: (() => void)[] = []
  const run = client.rollouts.map(
    tasksOf(3),
    async ({ key, log, sandbox }) => {
      log(`hello from ${key}`)
      await sandbox.files.write('/out/state', key)
      if (key === 't1') await new Promise<void>((resolve) => gates.push(resolve))
      if (key === 't0') throw new Error('it broke', { cause: new Error('deeper') })
      return { reward: 1 }
    },
    {
      ...{ name: 'looked-at', from: await daemon.image(), concurrency: 1 },
      ...{ artifacts: ['/out/*'], keep: 'on-failure' },
    },
  )
  await until(() => gates.length === 1)
  await until(async () => (await run.wait({ wait: false })).length === 1)
  const late = await sandlot('episode', 'looked-at', 't2')
  expect(late).toMatchObject({ code: 0, stderr: '' })
  expect(late.stdout).toMatch(/state +queued, for /)
  expect(late.stdout).toMatch(/waits for +a slot: all 1 of its run are taken\n/)
  const held = await sandlot('episode', 'looked-at', 't1')
  expect(held.stdout).toMatch(/state +running: agent, for /)
  expect(held.stdout).toMatch(/ends at the latest +in /)
  expect(held.stdout).toMatch(/sandbox +sb_\w+ on local/)
  expect(held.stdout).toMatch(/worker +wk_\w+, heard .* ago/)
  const waiting = await sandlot('runs', 'artifacts', 'looked-at', 't1')
  expect(waiting).toMatchObject({ code: 0, stderr: expect.stringContaining('is not done') })

  const failed = await sandlot('episode', 'looked-at', 't0')
  expect(failed.stdout).toMatch(/outcome +episode_error \(no sample\)/)
  expect(failed.stdout).toMatch(/why +.*it broke\n +.*deeper/)
  expect(failed.stdout).toMatch(/kept +sandlot sandbox create --from sn_\w+ opens its files/)
  expect(failed.stdout).toMatch(/1 +episode_error +sb_/)
  expect(failed.stdout).toMatch(/\/out\/state +2 B/)
  expect(failed.stdout).toMatch(/LOG\n.* hello from t0\n/)
  const [, id = ''] = /episode +(ep_\w+)/.exec(failed.stdout) ?? []
  expect((await sandlot('episode', id)).stdout).toBe(failed.stdout)
  expect(JSON.parse((await sandlot('episode', id, '--json')).stdout)).toMatchObject({ key: 't0' })
  expect(await sandlot('runs', 'artifacts', 'looked-at', 't0', '/out/state')).toMatchObject({
    stdout: 't0',
  })

  const listed = await sandlot('runs', 'episodes', 'looked-at')
  expect(listed.stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([
    ...['KEY', 't1', 't2', 't0', ''],
  ])
  const some = await sandlot('runs', 'episodes', 'looked-at', '--outcome', 'episode_error')
  expect(some.stdout).toMatch(/\nt0 .* it broke\n$/)
  const first = await sandlot('runs', 'episodes', 'looked-at', '--limit', '1')
  expect(first.stderr).toContain('--limit 10')
  for (const gate of gates) gate()
  await run.wait()

  const none = await sandlot('episode', 'looked-at', 'nothing')
  expect(none).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('hint:') })
  const wrong = await sandlot('episode', 'nothing')
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('RUN KEY') })
  const unknown = await sandlot('episode', 'ep_00000000000000000000')
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('no run has') })
})

test('results are exported as a file that is whole when it is there, and gone on with after a stop', async () => {
  const client = daemon.client()
  const options = { name: 'exported', from: await daemon.image() }
  const rows = await client.rollouts.map(tasksOf(5), async () => ({ reward: 1 }), options).wait()
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`)
  const file = join(directory, 'rows.jsonl')
  const exported = await sandlot('runs', 'results', 'exported', '--output', file)
  expect(exported).toMatchObject({ code: 0, stdout: '' })
  expect(exported.stderr).toContain(`5 rows are in ${file}`)
  expect(await readFile(file, 'utf8')).toBe(lines.join(''))
  expect(await readdir(directory)).toEqual(['rows.jsonl'])
  const later = await sandlot('runs', 'results', 'exported', '--from', rows[2]?.cursor ?? '')
  expect(later.stdout).toBe(lines.slice(3).join(''))

  // What an export left that was killed in the middle of a row.
  const partial = join(directory, 'again.jsonl.partial')
  await writeFile(partial, `${lines.slice(0, 2).join('')}{"half a row`)
  const again = join(directory, 'again.jsonl')
  const resumed = await sandlot(
    'runs',
    'results',
    'exported',
    '--output',
    again,
    '--format',
    'jsonl',
  )
  expect(resumed.stderr).toContain('3 rows are in')
  expect(await readFile(again, 'utf8')).toBe(lines.join(''))
  // Of another run, or of nothing that can be: it is begun anew.
  for (const left of ['not a row\n', `${lines[0]}`.replace(/"run":"rn_\w+"/, '"run":"rn_other"')]) {
    await writeFile(partial, left)
    await sandlot('runs', 'results', 'exported', '--output', again)
    expect(await readFile(again, 'utf8')).toBe(lines.join(''))
  }
  const nowhere = await sandlot('runs', 'results', 'exported', '--output', '/nothing/is/here')
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('can’t be written') })
})

test('results are exported as a table', async () => {
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet')
  const from = await daemon.image()
  const run = daemon.client().rollouts.map(
    tasksOf(3),
    async ({ key }) => {
      if (key === 't1') throw new Error('as planned')
      return { reward: 0.5, data: { key } }
    },
    { name: 'table', from, tags: { team: 'a' } },
  )
  const rows = await run.wait()
  const none = daemon.client().rollouts.open('no-rows', async () => ({ reward: 1 }), { from })
  await none.close()
  const read = async (name: string) => {
    const file = join(directory, `${name}.parquet`)
    const end = await sandlot('runs', 'results', name, '--format', 'parquet', '--output', file)
    expect(end).toMatchObject({ code: 0, stdout: '' })
    return await parquetReadObjects({ file: await asyncBufferFromFile(file) })
  }
  expect(await read('table')).toMatchObject(
    rows.map((row) => ({
      ...{ key: row.key, outcome: row.outcome, valid: row.valid, reward: row.reward },
      ...{ index: row.index, error: row.error, tags: '{"team":"a"}' },
      data: row.data === null ? null : JSON.stringify(row.data),
      'phases.agentMs': row.phases.agentMs,
      startedAt: new Date(row.startedAt),
    })),
  )
  expect(await read('no-rows')).toEqual([])
  expect(await readdir(directory)).toEqual(
    expect.not.arrayContaining([expect.stringMatching('partial|converted')]),
  )
  const wrong = await sandlot('runs', 'results', 'table', '--format', 'parquet')
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--output table.parquet'),
  })
})

test('what is there now is given of a run that stays open', async () => {
  const run = daemon
    .client()
    .rollouts.open<{ id: string }>('lasting', async () => ({ reward: 1 }), {
      from: await daemon.image(),
    })
  await run.putMany(tasksOf(3))
  await until(async () => (await run.wait({ wait: false })).length === 3)
  const now = await sandlot('runs', 'results', 'lasting', '--now')
  expect(now.stdout.trimEnd().split('\n')).toHaveLength(3)
  await run.close()
  const watched = await sandlot('runs', 'watch', 'lasting')
  expect(watched).toMatchObject({ code: 0, stderr: expect.stringContaining('3/3 done') })
})
