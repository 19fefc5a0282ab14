import { chmod, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { DAMAGED_RECORDS } from './coordinator/streams.ts'
import { startTestDaemon, testDirectories } from './testing/daemon.ts'

test('a record of any kind that can’t be read is set aside, and all the rest is served', async () => {
  await using directories = await testDirectories()
  const directory = join(directories.dataDirectory, 'engine')
  let sandbox = ''
  const first = await startTestDaemon({ directories })
  {
    await using client = new Sandlot({ url: first.url, apiKey: first.daemon.apiKey })
    const from = await first.image()
    for (const name of ['good', 'bad']) {
      await client.rollouts.map([{ id: 'a' }], async () => ({ reward: 1 }), { name, from }).wait()
      await client.queue(name).put('task')
    }
    await client.keys.create({ scope: 'read' })
    sandbox = (await first.sandbox()).id
    await first.daemon.close({ sandboxes: 'keep' })
  }
  const damaged: string[] = []
  {
    await using engine = await openSqliteEngine({ directory })
    const values = [
      Buffer.from('{'),
      Buffer.from('{"schema": 2}'),
      Buffer.from([0xff, 0]),
      Buffer.from(''),
    ]
    for (const [index, prefix] of ['run/', 'queue/', 'key/', 'ended/', 'sandbox/'].entries()) {
      const { entries } = await engine.kv.list(prefix)
      const found = entries.find(({ key }) => key.endsWith('/bad')) ?? entries[0]
      const key = found?.key ?? `${prefix}made-up`
      await engine.kv.put(key, values[index % values.length] as Buffer)
      damaged.push(key)
    }
  }
  await using again = await startTestDaemon({ directories, driver: first.driver })
  await using client = new Sandlot({ url: again.url, apiKey: again.daemon.apiKey })
  expect(await (await client.rollouts.get('good')).wait()).toMatchObject([{ reward: 1 }])
  await expect(client.rollouts.get('bad')).rejects.toMatchObject({ code: 'run_unknown' })
  expect((await again.ask('GET', '/v1/queues/good')).status).toBe(200)
  expect((await again.ask('GET', '/v1/queues/bad')).code).toBe('queue_unknown')
  // Nobody owns it any more.
  expect(first.driver.machine.all().filter(({ id }) => id === sandbox)).toEqual([])
  await again.daemon.close()
  await using engine = await openSqliteEngine({ directory })
  const aside = (await engine.kv.list(DAMAGED_RECORDS)).entries.map(({ key }) => key)
  expect(aside.sort()).toEqual(damaged.map((key) => DAMAGED_RECORDS + key).sort())
  // The results of the run whose record is damaged are where they were.
  expect((await engine.log.list('run/')).streams.length).toBeGreaterThanOrEqual(2)
})

test.each([
  ['garbage', (path: string) => writeFile(path, 'garbage '.repeat(10_000))],
  ['nothing', (path: string) => truncate(path, 0)],
  ['half of it', (path: string) => truncate(path, 5_000)],
])('a database of which %s is left is refused, with what to do', async (_, damage) => {
  await using directories = await testDirectories()
  const first = await startTestDaemon({ directories })
  await first.image()
  await first.daemon.close()
  await damage(join(directories.dataDirectory, 'engine', 'engine.db'))
  const started = startTestDaemon({ directories })
  await expect(started).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('database'),
    hint: expect.stringContaining('sandlot restore-backup'),
  })
})

test.each(['', 'short', '\0'.repeat(100)])(
  'a local key that is %j is made anew, and what was given out in its name is void',
  async (text) => {
    await using directories = await testDirectories()
    const first = await startTestDaemon({ directories })
    const { apiKey } = first.daemon
    await first.daemon.close()
    const path = join(directories.dataDirectory, 'key')
    await chmod(path, 0o600)
    await writeFile(path, text)
    await using again = await startTestDaemon({ directories })
    expect(again.daemon.apiKey).not.toBe(apiKey)
    expect(again.daemon.apiKey).toMatch(/^\S{32,}$/)
    expect((await again.ask('GET', '/v1/sandboxes', { key: apiKey })).code).toBe('unauthorized')
  },
)
