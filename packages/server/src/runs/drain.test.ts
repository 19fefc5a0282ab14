import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { readAnnouncement } from '../announcement.ts'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

const tasks = [{ id: 'a' }, { id: 'b' }]

function portOf({ url }: TestDaemon): number {
  return Number(new URL(url).port)
}

test('a drain lets an admitted episode go on, admits none, and is seen', async () => {
  await using directories = await testDirectories()
  const script = () => ({ stdout: 'x' })
  const first = await startTestDaemon({ directories, script })
  const notices: string[] = []
  await using client = new Sandlot({
    ...{ url: first.url, apiKey: first.daemon.apiKey },
    onNotice: ({ kind }) => notices.push(kind),
  })
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const run = client.rollouts.map(
    tasks,
    async ({ sandbox, attempt }) => {
      begun.resolve()
      await goOn.promise
      const { stdout } = await sandbox.exec(['after'])
      return { reward: stdout === 'x' ? attempt : 0 }
    },
    { name: 'r', from: await first.image(), concurrency: 1, retry: { infra: 0 } },
  )
  await begun.promise
  const closed = first.daemon.close({ drainMs: 60_000 })
  await until(async () => (await first.ask('GET', '/healthz')).text.includes('draining'))
  await until(() => notices.includes('daemon_draining'))
  expect((await first.ask('GET', '/v1/runs/r')).json).toMatchObject({
    state: 'running',
    reason: expect.stringContaining('draining'),
  })
  expect((await readAnnouncement(directories.runDirectory))?.url).toBe(first.url)
  goOn.resolve()
  await closed
  expect(await readAnnouncement(directories.runDirectory)).toBeUndefined()
  await using _again = await startTestDaemon({
    directories,
    daemon: { port: portOf(first) },
    script,
  })
  const rows = await run.wait()
  expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual([
    ['graded', 1],
    ['graded', 1],
  ])
})

test('an attempt that a stop ends is made again, and no retry pays for it', async () => {
  await using directories = await testDirectories()
  const first = await startTestDaemon({ directories })
  await using client = new Sandlot({ url: first.url, apiKey: first.daemon.apiKey })
  const begun = Promise.withResolvers<void>()
  const run = client.rollouts.map(
    [{ id: 'a' }],
    async ({ sandbox, attempt }) => {
      begun.resolve()
      if (attempt === 1) await new Promise(() => {})
      await sandbox.exec(['x'])
      return { reward: 1 }
    },
    { name: 'r', from: await first.image(), concurrency: 1, retry: { infra: 0 } },
  )
  await begun.promise
  await first.daemon.close()
  expect(first.driver.machine.size).toBe(0)
  await using _again = await startTestDaemon({ directories, daemon: { port: portOf(first) } })
  expect(await run.wait()).toMatchObject([
    {
      ...{ outcome: 'graded', reward: 1, attempt: 2 },
      attempts: [{ outcome: null, cause: ['the daemon was stopped'] }, { outcome: 'graded' }],
    },
  ])
})

test('a person’s stop of an episode’s sandbox ends the episode at once, as cancelled_user', async () => {
  await using at = await startTestDaemon()
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  const begun = Promise.withResolvers<string>()
  const run = client.rollouts.map(
    [{ id: 'a' }],
    async ({ sandbox }) => {
      begun.resolve(sandbox.id)
      await new Promise(() => {})
    },
    { name: 'r', from: await at.image(), concurrency: 1 },
  )
  await at.ask('DELETE', `/v1/sandboxes/${await begun.promise}`)
  expect(await run.wait()).toMatchObject([
    { outcome: 'cancelled_user', valid: false, reward: null, attempt: 1 },
  ])
})
