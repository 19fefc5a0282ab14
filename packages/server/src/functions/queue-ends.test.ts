/** What is left of queues and tasks that are over, and what is asked of them then. */
import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { until } from '../testing/until.ts'
import { PROJECT, TestQueues } from './testing/open-queues.ts'

const never = () => new Promise<never>(() => {})
const NEVER = new AbortController().signal
const HOUR_MS = 3_600_000

test('dead letters that die again at once are replayed once each, and lost by nothing', async () => {
  await using at = await TestQueues.open(() => {
    throw new RangeError('no good')
  })
  await at.withFunction('q', { retry: { error: 0 } })
  await at.add('q', ['a', 'b', 'c'])
  const dead = async () => (await at.queues.get(PROJECT, 'q')).tasks.dead
  await until(async () => (await dead()) === 3)
  expect(await at.queues.replay(PROJECT, 'q', undefined)).toBe(3)
  await until(async () => (await at.results('q')).length === 6 && (await dead()) === 3)
  expect(await at.queues.replay(PROJECT, 'q', ['no such task', 'x'.repeat(300)])).toBe(0)
})

test('results go by the age that their queue says, else the daemon, and dead letters stay', async () => {
  await using at = await TestQueues.open((json) => {
    if (json === '"bad"') throw new RangeError('no good')
    return json
  })
  at.retainMs = 2 * HOUR_MS
  await at.killAndStart()
  await at.withFunction('own', { retain: '6h', retry: { error: 0 } })
  await at.withFunction('set')
  await at.withFunction('calls', { kind: 'calls' })
  expect((await at.queues.list(PROJECT)).map(({ name, retain }) => [name, retain])).toEqual([
    ['own', 6 * HOUR_MS],
    ['set', 2 * HOUR_MS],
    ['calls', 2 * HOUR_MS],
  ])
  for (const name of ['own', 'set', 'calls']) {
    await at.add(name, ['a'])
    await at.resultsOf(name, 1)
  }
  await at.add('own', ['bad'])
  await at.resultsOf('own', 2)
  const beginMs = at.clock.now()
  await at.passUntil(HOUR_MS / 6, async () => (await at.results('set')).length === 0)
  expect(at.clock.now() - beginMs).toBeLessThan(6 * HOUR_MS)
  expect(await at.results('own')).toHaveLength(2)
  await at.passUntil(HOUR_MS / 6, async () => (await at.queues.list(PROJECT)).length === 2)
  await at.passUntil(HOUR_MS / 6, async () => (await at.results('own')).length === 0)
  expect((await at.queues.dead(PROJECT, 'own', {})).items).toMatchObject([{ json: '"bad"' }])
  // It stays as it was said where nothing is said.
  await at.withFunction('own', { autoscale: { maxContainers: 1 } })
  expect(await at.queues.get(PROJECT, 'own')).toMatchObject({ retain: 6 * HOUR_MS })
})

test('a queue that is deleted leaves nothing, also of tasks whose time is to come', async () => {
  await using at = await TestQueues.open()
  await at.withFunction('q')
  await at.add('q', ['later'], { delay: 60_000 })
  const [entry] = (await at.engine.kv.list('queue/')).entries
  const { uid } = JSON.parse(Buffer.from(entry?.value ?? []).toString())
  await at.queues.delete(PROJECT, 'q')
  expect(await at.engine.queue.depth(`queue/${uid}`)).toMatchObject({ delayed: 0 })
  expect((await at.engine.kv.list('')).entries).toEqual([])
  expect((await at.engine.blobs.pins('')).pins).toEqual([])
})

test('what still runs for an earlier definition leaves nothing in a queue that is deleted', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('q')
  await at.add('q', ['a'])
  await until(() => at.containers.inputs.length === 1)
  await at.withFunction('q', { autoscale: { maxContainers: 3 } })
  await at.queues.delete(PROJECT, 'q')
  expect(at.containers.live.size).toBe(0)
  expect((await at.engine.kv.list('')).entries).toEqual([])
})

test('a task that no container had when the daemon stopped has lost nothing', async () => {
  await using at = await TestQueues.open(() => {
    throw new RangeError('no good')
  })
  await at.withFunction('q', { retry: { error: 3, infra: 0, backoff: 0 } })
  const found = Promise.withResolvers<void>()
  const reading = Promise.withResolvers<void>()
  const { log } = at.engine
  const find = log.find.bind(log)
  log.find = async (...question) => {
    reading.resolve()
    await found.promise
    return await find(...question)
  }
  await at.add('q', ['a'])
  await reading.promise
  const closed = at.queues[Symbol.asyncDispose]()
  found.resolve()
  await closed
  at.containers.handler = (json) => json
  await at.killAndStart()
  expect(await at.resultsOf('q', 1)).toMatchObject([{ ok: true, attempts: 2 }])
})

test('a cursor of a queue that was deleted is refused by the one that has its name', async () => {
  await using at = await TestQueues.open()
  await at.withFunction('q')
  await at.add('q', [1, 2, 3])
  const after = (await at.resultsOf('q', 3)).at(-1)?.cursor
  await at.queues.delete(PROJECT, 'q')
  await at.withFunction('q')
  const reading = at.queues.results(PROJECT, 'q', { after, wait: 10_000 }, NEVER)
  await expect(reading).rejects.toMatchObject({ code: 'invalid_request' })
})

test('the result of a task that is not there is an error, and no wait without an end', async () => {
  await using at = await TestQueues.open(never)
  await at.withFunction('q')
  const ask = (task: string) => at.queues.result(PROJECT, 'q', { task, wait: 0 }, NEVER)
  await expect(ask('0000000000000007')).rejects.toMatchObject({ code: 'not_found' })
  for (const task of ['x'.repeat(600), 'a b', '']) {
    await expect(ask(task)).rejects.toMatchObject({ code: 'invalid_request' })
  }
  const [added] = await at.add('q', ['a'])
  expect(await ask(added?.task ?? '')).toBeNull()
})

test('a function that is not loaded in time fails the calls that wait, and is tried again', async () => {
  await using at = await TestQueues.open()
  at.containers.failure = new SandlotError('function_timeout', 'it was not loaded')
  await at.withFunction('calls', { kind: 'calls' })
  await at.add('calls', ['a'])
  await at.passUntil(300, async () => (await at.results('calls')).length === 1)
  expect(await at.results('calls')).toMatchObject([
    { attempts: 0, error: { code: 'function_timeout' } },
  ])
  at.containers.failure = undefined
  // Until it is tried again there is nothing to wait for.
  at.clock.advance(60_000)
  await at.add('calls', ['b'])
  await at.passUntil(300, async () => (await at.results('calls')).length === 2)
  expect((await at.results('calls'))[1]).toMatchObject({ ok: true })
})
