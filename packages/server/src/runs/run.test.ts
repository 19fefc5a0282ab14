import { LIMITS } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'

test('a batch of the client’s own episodes: each in its sandbox, each with one result, nothing left', async () => {
  await using at = await startTestDaemon({
    script: ({ argv }) => ({ stdout: `${argv.at(-1)}` }),
  })
  const from = await at.image()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const tasks = Array.from({ length: 20 }, (_, n) => ({ id: `t${n}`, n }))
  const run = client.rollouts.map(
    tasks,
    async ({ sandbox, task }) => {
      const { stdout } = await sandbox.exec(['echo', String(task.n)])
      return { reward: Number(stdout) }
    },
    { name: 'batch', from, concurrency: 4 },
  )
  const rewards = new Map<string, number | null>()
  for await (const row of run.results()) {
    expect(row).toMatchObject({ outcome: 'graded', valid: true })
    rewards.set(row.key, row.reward)
  }
  expect(rewards.size).toBe(20)
  for (const { id, n } of tasks) expect(rewards.get(id)).toBe(n)
  const listed = await at.ask('GET', '/v1/sandboxes')
  expect(listed.json).toMatchObject({ items: [] })
  expect((await at.ask('GET', '/v1/runs/batch')).json).toMatchObject({ state: 'finished' })
  expect((await at.ask('GET', '/v1/runs/batch/report')).json).toMatchObject({ attempts: 20 })
  expect((await at.ask('DELETE', '/v1/runs/batch')).status).toBe(204)
  expect((await at.ask('GET', '/v1/runs/batch')).code).toBe('run_unknown')
})

test('resources that the machine never has are refused with the run; those of one task are that task’s', async () => {
  await using at = await startTestDaemon()
  const from = await at.image()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const tasks = [{ id: 'fits' }, { id: 'too-large', resources: { memory: '90TiB' } }]
  const episode = async () => ({ reward: 1 })
  const large = { from, name: 'large', resources: { memory: '90TiB' } }
  await expect(client.rollouts.map(tasks, episode, large).wait()).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('resources.memory: 90 TiB are asked for'),
  })
  expect((await at.ask('GET', '/v1/runs/large')).code).toBe('run_unknown')
  const run = client.rollouts.map(tasks, episode, {
    ...{ from, each: ({ resources }) => (resources ? { resources } : {}) },
  })
  const rows = await run.wait()
  expect(Object.fromEntries(rows.map(({ key, outcome }) => [key, outcome]))).toEqual({
    ...{ fits: 'graded', 'too-large': 'task_invalid' },
  })
})

test('a grade by command runs in a world of its own, with files that are brought there alone', async () => {
  await using at = await startTestDaemon({
    script: ({ world, argv, files }) => {
      if (argv[0] !== '/grade') return { stdout: world }
      return { exitCode: world === 'grade' && files.bytes('/tests/t') ? 0 : 1 }
    },
  })
  const from = await at.image()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const run = client.rollouts.map(
    [{ id: 'a' }],
    async ({ sandbox }) => {
      await sandbox.exec(['work'])
    },
    {
      name: 'graded',
      from,
      concurrency: 1,
      grade: { run: ['/grade'], in: 'world', files: { '/tests/t': Buffer.from('secret') } },
    },
  )
  const rows = []
  for await (const row of run.results()) rows.push(row)
  expect(rows).toMatchObject([{ key: 'a', outcome: 'graded', reward: 1 }])
})

test('what the policy drops is recorded, and absent from what a trainer reads; what it masks is there', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const run = client.rollouts.map(
    [{ id: 'good' }, { id: 'throws' }, { id: 'limited' }],
    async ({ key }) => {
      if (key === 'throws') throw new Error('as planned')
      return key === 'limited' ? { limit: 'turns' } : { reward: 1 }
    },
    {
      ...{ name: 'dropping', from: await at.image() },
      policy: { episode_error: 'drop', limit: 'mask' },
    },
  )
  const told = async (dropped: boolean) =>
    (await run.wait({ dropped })).map((row) => [row.key, row.valid, row.dropped, row.reward]).sort()
  const kept = [
    ['good', true, false, 1],
    ['limited', false, false, null],
  ]
  expect(await told(false)).toEqual(kept)
  expect(await told(true)).toEqual([...kept, ['throws', false, true, null]])
})

test('an episode’s log and artifacts are kept with its row, also where it threw, and can be had again', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const refused: unknown[] = []
  const run = client.rollouts.map(
    [{ id: 'good' }, { id: 'throws' }],
    async ({ key, log, artifact, sandbox }) => {
      log(`I am ${key}`)
      await artifact('note', 'first')
      await artifact('note', 'second')
      if (key === 'throws') throw new Error('as planned')
      await sandbox.files.write('/made', new Uint8Array([1, 2, 3]))
      await artifact('from inside', { path: '/made' })
      for (const [name, content] of [
        ['log', 'x'],
        ['a\nb', 'x'],
        ['large', new Uint8Array(LIMITS.artifactBytes + 1)],
      ] as const) {
        refused.push(await artifact(name, content).catch((error) => error.code))
      }
      return { reward: 1 }
    },
    { name: 'leaving', from: await at.image() },
  )
  const rows = (await run.wait()).sort((a, b) => a.index - b.index)
  expect(rows.map(({ artifacts }) => artifacts.map(({ name }) => name))).toEqual([
    ['note', 'from inside', 'log'],
    ['note', 'log'],
  ])
  expect(refused).toEqual(['invalid_request', 'invalid_request', 'too_large'])
  const [good, threw] = rows
  if (!good || !threw) throw new Error('no rows')
  const text = async (row: typeof good, name: string) =>
    Buffer.from(await run.artifact(row, name)).toString()
  expect(await text(good, 'note')).toBe('second')
  expect([...(await run.artifact(good, 'from inside'))]).toEqual([1, 2, 3])
  expect(await text(threw, 'log')).toMatch(/^\d{4}-.*Z I am throws\n$/)
  await expect(run.artifact(good, 'other')).rejects.toMatchObject({ code: 'not_found' })
})
