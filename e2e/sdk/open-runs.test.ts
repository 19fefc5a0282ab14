import { type ResultRow, Sandlot } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon()
})
afterAll(async () => daemon[Symbol.asyncDispose]())

const graded = async () => ({ reward: 1 })

describe('a run that stays open', () => {
  test('takes tasks while it runs and gives their results, until it is closed', async () => {
    const client = daemon.client()
    const run = client.rollouts.open<{ id: string }>('actors', graded, {
      ...{ from: await daemon.image(), concurrency: 4 },
    })
    expect(await run.put({ id: 'a' })).toEqual({ key: 'a', added: true })
    const reading = run.results()
    expect((await reading.next()).value).toMatchObject({ key: 'a', reward: 1 })
    await until(async () => (await run.view()).state === 'open')
    expect(await run.putMany([{ id: 'b' }, { id: 'c' }, { id: 'a' }])).toEqual({
      ...{ keys: ['b', 'c', 'a'], added: 2, known: 1 },
    })
    expect(await run.putMany([])).toEqual({ keys: [], added: 0, known: 0 })
    expect((await run.close()).counts.tasks).toBe(3)
    await run.close()
    await expect(run.put({ id: 'd' })).rejects.toMatchObject({ code: 'run_closed', hint: /./ })
    expect(await run.put({ id: 'b' }).catch((error) => error.code)).toMatch(/run_closed|^\[/)
    const rest: string[] = []
    for await (const row of reading) rest.push(row.key)
    expect(rest.sort()).toEqual(['b', 'c'])
  })

  test('knows a task without a name by its content', async () => {
    const run = daemon.client().rollouts.open<unknown>('by-content', graded, {
      from: await daemon.image(),
    })
    const first = await run.put({ prompt: 'one' })
    expect(first).toEqual({ key: expect.stringMatching(/^[0-9a-f]{32}$/), added: true })
    expect(await run.put({ prompt: 'one' })).toEqual({ key: first.key, added: false })
    expect((await run.put({ prompt: 'two' })).key).not.toBe(first.key)
    await expect(run.putMany([{ id: 'x' }, { id: 'x', other: 1 }])).rejects.toMatchObject({
      code: 'task_conflict',
    })
    await expect(run.put(() => 1)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(run.putMany(7 as never)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(run.put({ id: 'k'.repeat(10_000) })).rejects.toMatchObject({
      ...{ code: 'invalid_request', message: expect.stringContaining('10000 characters') },
    })
    await run.close()
    expect(await run.wait()).toHaveLength(2)
  })

  test('goes on under its name after its client was killed, three times, each task with one result', async () => {
    const options = { from: await daemon.image(), concurrency: 3 }
    let attempts = 0
    const seen: ResultRow[] = []
    for (let life = 0; life < 4; life++) {
      const client = new Sandlot({ url: daemon.url, apiKey: daemon.apiKey })
      const isLast = life === 3
      const held: string[] = []
      const run = client.rollouts.open<{ id: string }>(
        'killed',
        async ({ key }) => {
          attempts++
          held.push(key)
          // In each life but the last one of the tasks is never done.
          if (!isLast && key === `t${life}-0`) await new Promise(() => {})
          return { reward: 1 }
        },
        options,
      )
      // What was put before is put again, as by a script that starts from its beginning.
      const all = Array.from({ length: life + 1 }, (_, n) =>
        ['0', '1', '2'].map((each) => ({ id: `t${n}-${each}` })),
      ).flat()
      const { added } = await run.putMany(all)
      expect(added).toBe(3)
      await until(() => held.includes(`t${life}-0`))
      const from = seen.at(-1)?.cursor
      if (isLast) await run.close()
      for await (const row of run.results(from === undefined ? {} : { from })) {
        seen.push(row)
        if (!isLast && seen.length === (life + 1) * 2) break
      }
      await client.close()
    }
    expect(seen.map(({ key }) => key).sort()).toEqual(
      [0, 1, 2, 3].flatMap((n) => [0, 1, 2].map((each) => `t${n}-${each}`)).sort(),
    )
    expect(seen.every(({ outcome }) => outcome === 'graded')).toBe(true)
    expect(attempts).toBeGreaterThan(12)
  })

  test('takes tasks of a process that does not work on it', async () => {
    const open = daemon.client().rollouts.open<{ id: string }>('produced', graded, {
      from: await daemon.image(),
    })
    await open.created
    const producer = await daemon.client().rollouts.attach<{ id: string }>('produced')
    await producer.put({ id: 'from-outside' })
    await producer.close()
    expect((await open.wait()).map(({ key }) => key)).toEqual(['from-outside'])
  })

  test('tells a put what is wrong with the run', async () => {
    const client = daemon.client()
    const wrong = client.rollouts.open('wrong name!', graded, { from: await daemon.image() })
    await expect(wrong.put({ id: 'a' })).rejects.toMatchObject({ code: 'invalid_request' })
    const none = client.rollouts.open('none', graded, { from: 'im_none' })
    await expect(none.put({ id: 'a' })).rejects.toMatchObject({ code: 'image_unknown' })
    const nothing = client.rollouts.open('nothing', 'x' as never, { from: 'im_none' })
    await expect(nothing.close()).rejects.toMatchObject({ message: /not a function/ })
    const controller = new AbortController()
    const left = client.rollouts.open('left', graded, {
      ...{ from: await daemon.image(), signal: controller.signal },
    })
    await left.put({ id: 'a' })
    controller.abort(new Error('that is all'))
    await expect(left.put({ id: 'b' })).rejects.toThrow('that is all')
    await (await client.rollouts.get('left')).cancel()
  })

  test('of no task at all is over when it is closed', async () => {
    const run = daemon.client().rollouts.open('empty', graded, { from: await daemon.image() })
    await run.close()
    expect(await run.wait()).toEqual([])
    expect((await run.view()).state).toBe('finished')
  })
})
