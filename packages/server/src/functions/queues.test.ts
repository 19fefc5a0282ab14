import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { until } from '../testing/until.ts'
import { PROJECT, TestQueues } from './testing/open-queues.ts'

const never = () => new Promise<never>(() => {})

test('tasks are worked on in containers, and each has one result', async () => {
  await using at = await TestQueues.open((json) => String(2 * Number(json)))
  await at.withFunction('q')
  const added = await at.add('q', [1, 2, 3])
  const rows = await at.resultsOf('q', 3)
  expect(rows.map(({ task }) => task).sort()).toEqual(added.map(({ task }) => task).sort())
  expect(rows.map(({ json }) => json).sort()).toEqual(['2', '4', '6'])
  expect(rows[0]).toMatchObject({ ok: true, error: null, attempts: 1, replay: 0 })
})

test('the same id is one task, and the same key is while it stands', async () => {
  await using at = await TestQueues.open()
  await at.put('q')
  const [first] = await at.add('q', ['a'], { id: 'id-00001' })
  expect(await at.add('q', ['a'], { id: 'id-00001' })).toEqual([{ ...first, duplicate: true }])
  const [keyed] = await at.add('q', ['b'], { key: 'k' })
  expect(await at.add('q', ['c'], { key: 'k' })).toEqual([{ ...keyed, duplicate: true }])
  expect((await at.queues.get(PROJECT, 'q')).tasks.ready).toBe(2)
})

test('higher priorities are begun first', async () => {
  const begun: (string | null)[] = []
  await using at = await TestQueues.open((json) => {
    begun.push(json)
    return json
  })
  await at.put('q', { autoscale: { maxContainers: 1 } })
  await at.add('q', ['low'])
  await at.add('q', ['high'], { priority: 5 })
  await at.withFunction('q')
  await at.resultsOf('q', 2)
  expect(begun).toEqual(['"high"', '"low"'])
})

test('a task with a delay waits for its time', async () => {
  await using at = await TestQueues.open()
  await at.withFunction('q')
  await at.add('q', ['later'], { delay: 60_000 })
  await at.add('q', ['now'])
  expect((await at.resultsOf('q', 1)).map(({ json }) => json)).toEqual(['"now"'])
  await at.passUntil(5_000, async () => (await at.results('q')).length === 2)
})

test('a handler that always fails makes dead letters, and holds nothing else up', async () => {
  await using at = await TestQueues.open((json) => {
    if (json === '"bad"') throw new RangeError('no good')
    return json
  })
  await at.withFunction('q', { retry: { error: 2, backoff: 1_000 } })
  await at.add('q', ['bad', 'a', 'b', 'c'])
  await until(async () => (await at.results('q')).length === 3)
  await at.passUntil(500, async () => (await at.results('q')).length === 4)
  const bad = (await at.results('q')).find(({ ok }) => !ok)
  expect(bad).toMatchObject({ attempts: 3, json: null, error: { code: null, name: 'RangeError' } })
  const { items } = await at.queues.dead(PROJECT, 'q', {})
  expect(items).toMatchObject([{ task: bad?.task, json: '"bad"', attempts: 3 }])

  at.containers.handler = (json) => json
  expect(await at.queues.replay(PROJECT, 'q', undefined)).toBe(1)
  const again = (await at.resultsOf('q', 5)).at(-1)
  expect(again).toMatchObject({ task: bad?.task, ok: true, replay: 1, attempts: 1 })
  expect((await at.queues.get(PROJECT, 'q')).tasks.dead).toBe(0)
})

test('a task whose container is lost is begun again in another', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('q')
  await at.add('q', ['a'])
  await until(() => at.containers.inputs.length === 1)
  at.containers.handler = (json) => json
  for (const container of at.containers.live) container.lose()
  await at.passUntil(300, async () => (await at.results('q')).length === 1)
  expect(await at.results('q')).toMatchObject([{ ok: true, attempts: 2 }])
})

test('a call whose container is lost is not begun again unless that is asked for', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('calls', { kind: 'calls' })
  await at.add('calls', ['a'])
  await until(() => at.containers.inputs.length === 1)
  for (const container of at.containers.live) container.lose()
  const [row] = await at.resultsOf('calls', 1)
  expect(row).toMatchObject({ ok: false, json: null, error: { code: 'function_lost' } })
  expect(at.containers.inputs).toHaveLength(1)
  expect((await at.queues.dead(PROJECT, 'calls', {})).items).toEqual([])
})

test('an input that takes too long ends, with its container', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('calls', { kind: 'calls', function: { timeout: 1_000 } as never })
  await at.add('calls', ['a'])
  await until(() => at.containers.inputs.length === 1)
  await at.passUntil(500, async () => (await at.results('calls')).length === 1)
  expect((await at.results('calls'))[0]).toMatchObject({ error: { code: 'function_timeout' } })
  await until(() => at.containers.live.size === 0)
})

test('a function that can’t be loaded fails its calls, and leaves tasks where they are', async () => {
  await using at = await TestQueues.open()
  at.containers.failure = new SandlotError('function_invalid', 'it can’t be loaded')
  await at.withFunction('calls', { kind: 'calls' })
  await at.withFunction('q')
  await at.add('calls', ['a'])
  await at.add('q', ['b'])
  await at.passUntil(300, async () => (await at.results('calls')).length === 1)
  expect((await at.results('calls'))[0]).toMatchObject({
    attempts: 0,
    error: { code: 'function_invalid', message: 'it can’t be loaded' },
  })
  await at.passUntil(300, async () => (await at.queues.get(PROJECT, 'q')).trouble !== null)
  expect((await at.queues.get(PROJECT, 'q')).tasks.ready).toBe(1)

  at.containers.failure = undefined
  await at.withFunction('q', { function: { concurrency: 2 } as never })
  await at.resultsOf('q', 1)
})

test('containers follow the depth of the queue, and go when they are idle', async () => {
  await using at = await TestQueues.open(never)
  const autoscale = { tasksPerContainer: 2, maxContainers: 3, idle: 10_000 }
  await at.withFunction('q', { autoscale, function: { concurrency: 2 } as never })
  expect(at.containers.live.size).toBe(0)
  await at.add('q', [1, 2, 3])
  await until(() => at.containers.live.size === 2)
  await at.add('q', [4, 5, 6, 7, 8, 9])
  await until(() => at.containers.live.size === 3)
  await until(() => at.containers.inputs.length === 6)
  expect((await at.queues.get(PROJECT, 'q')).containers).toEqual({ starting: 0, ready: 3 })
  at.containers.handler = (json) => json
  for (const container of at.containers.live) container.lose()
  await at.passUntil(250, async () => (await at.results('q')).length === 9)
  expect(at.containers.live.size).toBeGreaterThan(0)
  await at.passUntil(1_000, () => at.containers.live.size === 0)
})

test('what was acknowledged before a kill is done after it, once', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('q')
  await at.add('q', ['runs', 'waits'])
  await until(() => at.containers.inputs.length === 2)
  await at.add('q', ['later'], { delay: 30_000 })
  at.containers.handler = (json) => json
  await at.killAndStart()
  await at.passUntil(1_000, async () => (await at.results('q')).length === 3)
  const rows = await at.results('q')
  expect(rows.map(({ json }) => json).sort()).toEqual(['"later"', '"runs"', '"waits"'])
  expect(rows.map(({ attempts }) => attempts).sort()).toEqual([1, 2, 2])
})

test('a call that ran while the daemon was killed says that it may have had its effect', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('calls', { kind: 'calls' })
  await at.add('calls', ['a'])
  await until(() => at.containers.inputs.length === 1)
  at.containers.handler = (json) => json
  await at.killAndStart()
  await at.passUntil(1_000, async () => (await at.results('calls')).length === 1)
  expect((await at.results('calls'))[0]).toMatchObject({ error: { code: 'function_lost' } })
  expect(at.containers.inputs).toHaveLength(1)
})

test('a daemon that stops gives back what ran, and the next begins it at once', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('q')
  await at.add('q', ['a'])
  await until(() => at.containers.inputs.length === 1)
  at.containers.handler = (json) => json
  await at.queues[Symbol.asyncDispose]()
  expect(at.containers.live.size).toBe(0)
  await at.killAndStart()
  expect(await at.resultsOf('q', 1)).toMatchObject([{ ok: true, attempts: 2 }])
})

test('a daemon that stood still begins nothing twice', async () => {
  const end = Promise.withResolvers<void>()
  await using at = await TestQueues.open(async (json) => {
    await end.promise
    if (json === '"fails"') throw new Error('no good')
    return json
  })
  const function_ = { concurrency: 4 } as never
  await at.withFunction('calls', { kind: 'calls', retry: { error: 1 }, function: function_ })
  await at.add('calls', ['a', 'fails'])
  await until(() => at.containers.inputs.length === 2)
  at.aheadMs = 60_000
  // Whoever looks for tasks now is given its own again.
  await at.add('calls', ['b'])
  await until(() => at.containers.inputs.length > 2)
  end.resolve()
  await at.passUntil(300, async () => (await at.results('calls')).length === 3)
  const rows = await at.results('calls')
  expect(rows.find(({ json }) => json === '"a"')).toMatchObject({ attempts: 1 })
  expect(rows.find(({ ok }) => !ok)).toMatchObject({ attempts: 2, error: { message: 'no good' } })
  expect(at.containers.inputs).toHaveLength(4)
})

test('a queue that is deleted and made again begins empty', async () => {
  await using at = await TestQueues.open()
  await at.put('q')
  await at.add('q', ['a'])
  await at.queues.delete(PROJECT, 'q')
  await expect(at.queues.get(PROJECT, 'q')).rejects.toMatchObject({ code: 'queue_unknown' })
  await at.withFunction('q')
  await at.add('q', ['b'])
  expect((await at.resultsOf('q', 1)).map(({ json }) => json)).toEqual(['"b"'])
})

test('lines that were printed come before the result, and only to who asks for them', async () => {
  await using at = await TestQueues.open((json, { onLog }) => {
    onLog({ channel: 'stdout', text: `works on ${json}` })
    return json
  })
  await at.withFunction('q')
  await at.add('q', ['a'])
  await at.resultsOf('q', 1)
  const signal = new AbortController().signal
  const page = await at.queues.results(PROJECT, 'q', { logs: 0 }, signal)
  expect(page).toMatchObject({ logs: [{ seq: 0, text: 'works on "a"' }], logsNext: 1 })
  const next = await at.queues.results(PROJECT, 'q', { logs: 1, after: page.cursor }, signal)
  expect(next).toMatchObject({ results: [], logs: [], cursor: page.cursor })
})

test('results are removed by their age', async () => {
  await using at = await TestQueues.open()
  await at.withFunction('q')
  await at.withFunction('calls', { kind: 'calls' })
  await at.add('q', ['a'])
  await at.add('calls', ['b'])
  await at.resultsOf('q', 1)
  await at.resultsOf('calls', 1)
  const dayMs = 24 * 3_600_000
  await at.passUntil(dayMs / 4, async () => (await at.queues.list(PROJECT)).length === 1)
  expect(await at.results('q')).toHaveLength(1)
  await at.passUntil(dayMs / 2, async () => (await at.results('q')).length === 0)
})
