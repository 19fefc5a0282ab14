import type { ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import { EAT_SLOWLY } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const byKey = (rows: readonly ResultRow[]) => Object.fromEntries(rows.map((row) => [row.key, row]))

await story('what episodes leave', { pool: 2 }, (given) => {
  test('their files are kept, however they ended, and the sandboxes of failed ones can be opened', async () => {
    const tasks = ['good', 'wrong', 'throws', 'late', 'hostile', 'eaten'].map((id) => ({ id }))
    const run = given.client.rollouts.map(
      tasks,
      async ({ key, sandbox, signal }) => {
        await sandbox.exec(`mkdir -p /work/out/deep; echo ${key} >/work/out/deep/state.txt`)
        if (key === 'throws') throw new Error('as planned')
        if (key === 'late') await sandbox.exec('sleep 600', { signal })
        if (key === 'eaten') await sandbox.exec(EAT_SLOWLY)
        if (key === 'hostile') {
          await sandbox.exec(
            'cd /work/out; ln -s /etc/shadow link.txt; mkfifo pipe.txt; truncate -s 3G huge.txt; mkdir d.txt; ln -s / deep/root; setsid sh -c "while :; do date >racing.txt; done" >/dev/null 2>&1 &',
          )
        }
      },
      {
        ...{ from: given.image, concurrency: 3 },
        each: ({ id }) => (id === 'late' ? { timeout: { agent: '10s' } } : {}),
        resources: { memory: '256MiB', disk: '48MiB' },
        grade: { run: 'grep -q good /work/out/deep/state.txt', in: 'world' },
        ...{ artifacts: ['/work/out/**/*.txt'], keep: 'on-failure' },
      },
    )
    const rows = byKey(await run.wait())
    expect(Object.values(rows).map(({ key, outcome, reward }) => [key, outcome, reward])).toEqual(
      expect.arrayContaining([
        ['good', 'graded', 1],
        ['wrong', 'graded', 0],
        ['throws', 'episode_error', null],
        ['late', 'agent_timeout', 0],
        ['hostile', 'graded', 0],
        ['eaten', 'sandbox_oom', 0],
      ]),
    )
    const state = '/work/out/deep/state.txt'
    for (const key of ['good', 'wrong', 'throws', 'late']) {
      const row = rows[key] as ResultRow
      expect(row).toMatchObject({ artifacts: [{ name: state }], leftOut: [] })
      expect(Buffer.from(await run.artifact(row, state)).toString()).toBe(`${key}\n`)
    }
    const { hostile, eaten, throws, late } = rows
    const names = hostile?.artifacts.map(({ name }) => name) ?? []
    expect(names.filter((name) => !name.endsWith('racing.txt'))).toEqual([state])
    expect(hostile?.leftOut).toEqual([
      expect.stringMatching(/^\/work\/out\/huge.txt: it has 3 GiB/),
    ])
    expect(eaten).toMatchObject({ artifacts: [], kept: null })
    const kept = Object.values(rows).flatMap((row) => (row.kept === null ? [] : [row.key]))
    expect(kept.sort()).toEqual(['late', 'throws'])
    for (const row of [throws, late]) {
      await using sandbox = await given.client.sandboxes.create({ from: row?.kept ?? '' })
      expect(await sandbox.files.readText(state)).toBe(`${row?.key}\n`)
    }
    await run.delete()
    expect(await Array.fromAsync(given.client.snapshots.list({ all: true }))).toEqual([])
  })

  test('two hundred megabytes are taken out without so much memory, and one file as large is left out by name', async () => {
    const fill = (name: string, count: number) =>
      `head -c ${count}000000 /dev/zero | tr '\\0' ${name[0]} >/work/out/${name}`
    const before = given.daemon.memory().nowBytes
    const run = given.client.rollouts.map(
      [{ id: 'large' }],
      async ({ sandbox }) => {
        const parts = ['a', 'b', 'c', 'd'].map((name) => fill(name, 50))
        await sandbox.exec(['mkdir -p /work/out', ...parts, fill('whole', 200)].join(' && '))
      },
      {
        ...{ from: given.image, grade: { run: async () => 1 }, artifacts: ['/work/out/*'] },
        resources: { memory: '192MiB', disk: '512MiB' },
      },
    )
    const [row] = (await run.wait()) as [ResultRow]
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(given.daemon.memory().peakBytes - before).toBeLessThan(160 * 2 ** 20)
    expect(row.artifacts.map(({ name }) => name).sort()).toEqual(
      ['a', 'b', 'c', 'd'].map((name) => `/work/out/${name}`),
    )
    expect(row.leftOut).toEqual([expect.stringMatching(/^\/work\/out\/whole: it has 190.7 MiB/)])
    const bytes = Buffer.from(await run.artifact(row, '/work/out/b'))
    expect([bytes.length, bytes.every((byte) => byte === 98)]).toEqual([50_000_000, true])
    expect(row.phases.teardownMs).toBeLessThan(30_000)
    await run.delete()
  })

  test('a daemon that is killed while files are taken out keeps each once, and gives one result', async () => {
    const run = given.client.rollouts.map(
      Array.from({ length: 6 }, (_, n) => ({ id: `t${n}` })),
      async ({ key, sandbox }) => {
        await sandbox.exec(`echo ${key} >/state; head -c 20000000 /dev/urandom >/large`)
        throw new Error('as planned')
      },
      {
        ...{ from: given.image, concurrency: 2, keep: 6, artifacts: ['/state'] },
        resources: { memory: '256MiB', disk: '48MiB' },
      },
    )
    const reading = run.wait()
    const client = given.client
    await until('one of them is given back', async () => {
      const episodes = await Array.fromAsync(run.episodes())
      return episodes.some(({ phase }) => phase === 'releasing' || phase === 'ended')
    })
    await given.daemon.kill()
    await given.daemon.start()
    const rows = await reading
    expect(rows.map(({ key }) => key).sort()).toEqual(['t0', 't1', 't2', 't3', 't4', 't5'])
    const snapshots = await Array.fromAsync(client.snapshots.list({ all: true }))
    expect(snapshots.length).toBeLessThanOrEqual(6)
    const ids = new Set(snapshots.map(({ id }) => id))
    for (const row of rows) {
      expect(row).toMatchObject({ outcome: 'episode_error', artifacts: [{ name: '/state' }] })
      expect(ids.has(row.kept ?? '')).toBe(true)
    }
    await run.delete()
  })

  test('an actor that is killed opens its run again, and another process shares its work', async () => {
    const options = { from: given.image, concurrency: 4, resources: { memory: '128MiB' } }
    const episode = (who: string) => async () => ({ reward: 1, data: who })
    const first = given.daemon.client()
    const run = first.rollouts.open<{ id: string }>('actors', async () => new Promise(() => {}), {
      ...options,
    })
    await run.putMany(['a', 'b', 'c'].map((id) => ({ id })))
    await until('all are running', async () => (await run.view()).counts.running === 3)
    await first.close()
    const again = given.client.rollouts.open<{ id: string }>('actors', episode('again'), options)
    expect(await again.putMany(['a', 'b', 'c', 'd'].map((id) => ({ id })))).toMatchObject({
      ...{ added: 1, known: 3 },
    })
    const other = given.daemon.client()
    await using attached = await other.rollouts.attach<{ id: string }>('actors', episode('other'), {
      from: given.image,
    })
    await attached.put({ id: 'e' })
    await again.close()
    const rows = await again.wait()
    expect(rows.map(({ key, outcome }) => `${key} ${outcome}`).sort()).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((key) => `${key} graded`),
    )
    expect(await attached.wait()).toEqual(rows)
  })
})
