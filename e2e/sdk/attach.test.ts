import type { ResultRow } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon()
})
afterAll(async () => daemon[Symbol.asyncDispose]())

/** Workers that are connected, of all runs. */
async function workersOf({ url }: FakeDaemon): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return Number(/^sandlot_workers (\d+)$/m.exec(metrics)?.[1])
}

const tasksOf = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `t${n}`, n }))

describe('a process that attaches to a run', () => {
  test('shares its work with the one that started it, and both read all results', async () => {
    const from = await daemon.image()
    const by = new Map<string, Set<string>>()
    // Nobody gets on before each has something: so none of them does it all.
    const episodeOf =
      (who: string) =>
      async ({ key }: { key: string }) => {
        by.set(who, (by.get(who) ?? new Set()).add(key))
        await until(() => by.size === 2)
        return { reward: 1, data: who }
      }
    await using run = daemon.client().rollouts.open('shared', episodeOf('first'), {
      ...{ from, concurrency: 8 },
    })
    await run.created
    const second = await daemon
      .client()
      .rollouts.attach('shared', episodeOf('second'), { concurrency: 4 })
    // Before both are connected, the first would take all places of the run, and leave none for the second.
    await until(async () => (await workersOf(daemon)) === 2)
    await run.putMany(tasksOf(20))
    await run.close()
    const [rows, same] = await Promise.all([run.wait(), second.wait()])
    expect(same).toEqual(rows)
    expect(rows.map(({ key }) => key).sort()).toEqual(
      tasksOf(20)
        .map(({ id }) => id)
        .sort(),
    )
    expect(new Set(rows.map(({ data }) => data))).toEqual(new Set(['first', 'second']))
    const done = [...by.values()].reduce((sum, keys) => sum + keys.size, 0)
    expect(done).toBe(20)
  })

  test('is refused with what differs, and let in where all that it names is so', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    const started = {
      ...{ from, timeout: { agent: '1m' }, version: '1', setup: ['true'], seed: 7 },
      grade: { run: ['true'] },
    } as const
    await using run = client.rollouts.open('told', async () => {}, started)
    await run.created
    const episode = async () => {}
    for (const [options, field] of [
      [{ version: '2' }, 'version'],
      [{ timeout: { agent: '2m' } }, 'timeout.agent'],
      [{ setup: [] }, 'setup'],
      [{ grade: { run: ['false'] } }, 'grade.run'],
      [{ group: { size: 2 } }, 'group.size'],
    ] as const) {
      await expect(
        client.rollouts.attach('told', episode, { ...started, ...options }),
      ).rejects.toMatchObject({
        ...{ code: 'run_differs', message: expect.stringContaining(field), hint: /./ },
        details: { fields: { [field]: {} } },
      })
    }
    await expect(
      client.rollouts.attach('told', episode, { from: 'im_none' }),
    ).rejects.toMatchObject({ code: 'image_unknown' })
    for (const options of [{}, started, { version: '1' }, { timeout: { agent: 60_000 } }]) {
      await using attached = await client.rollouts.attach('told', undefined, options)
      expect((await attached.view()).state).not.toBe('finished')
    }
    await run.cancel()
  })

  test('of a run that is over gets its results, and none of a name that nothing has', async () => {
    const client = daemon.client()
    const episode = async () => ({ reward: 1 })
    const options = { name: 'over', from: await daemon.image() }
    const rows = await client.rollouts.map(tasksOf(3), episode, options).wait()
    let calls = 0
    const attached = await daemon.client().rollouts.attach('over', async () => {
      calls++
      return { reward: 0 }
    })
    expect(await attached.wait()).toEqual(rows)
    expect(calls).toBe(0)
    await expect(client.rollouts.attach('nobody')).rejects.toMatchObject({ code: 'run_unknown' })
    await expect(client.rollouts.attach('no name')).rejects.toMatchObject({ code: 'run_unknown' })
    await expect(
      client.rollouts.attach('over', undefined, { tags: { a: 'b' } } as never),
    ).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('brings the grader where the run is graded by a function', async () => {
    const client = daemon.client()
    const grade = { run: async () => 1 }
    await using run = client.rollouts.open('by-function', async () => {}, {
      ...{ from: await daemon.image(), grade },
    })
    await run.created
    await expect(client.rollouts.attach('by-function', async () => {})).rejects.toMatchObject({
      ...{ code: 'invalid_request', hint: expect.stringContaining('grade') },
    })
    await client.rollouts.attach('by-function', async () => {}, { grade })
    await run.put({ id: 'a' })
    await run.close()
    expect(await run.wait()).toMatchObject([{ key: 'a', reward: 1 }])
  })

  test('leaves it at the end of its block, and whoever started it goes on', async () => {
    const client = daemon.client()
    const gates: (() => void)[] = []
    await using run = client.rollouts.map(
      tasksOf(2),
      async () => {
        await new Promise<void>((resolve) => gates.push(resolve))
        return { reward: 1 }
      },
      { name: 'left-alone', from: await daemon.image(), concurrency: 2 },
    )
    await until(() => gates.length === 2)
    {
      await using reader = await daemon.client().rollouts.attach('left-alone')
      expect((await reader.view()).counts.running).toBe(2)
      await using other = await daemon.client().rollouts.get('left-alone')
      expect(other.name).toBe('left-alone')
    }
    for (const open of gates) open()
    const rows: ResultRow[] = await run.wait()
    expect(rows.map(({ outcome }) => outcome)).toEqual(['graded', 'graded'])
  })
})
