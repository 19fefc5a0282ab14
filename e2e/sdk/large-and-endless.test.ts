import { LIMITS } from '@sandlot/protocol'
import { SandlotError } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon()
})
afterAll(async () => daemon[Symbol.asyncDispose]())

const MIB = 2 ** 20

test('a task and a result of 50 MB pass, larger ones are told what is wrong with them', async () => {
  const large = 'x'.repeat(50 * MIB)
  const run = daemon.client().rollouts.map(
    [{ id: 'large', large }],
    async ({ task }) => ({
      reward: task.large.length === large.length ? 1 : 0,
      data: task.large,
    }),
    { from: await daemon.image() },
  )
  const [row] = await run.wait()
  expect(row).toMatchObject({ reward: 1, data: null, dataBlob: expect.stringMatching(/^sha256:/) })
  expect(row && (await run.data(row))).toBe(large)

  const tooLarge = 'x'.repeat(LIMITS.payloadBytes)
  await using refused = daemon.client().rollouts.map([{ tooLarge }], async () => ({ reward: 1 }), {
    from: await daemon.image(),
  })
  await expect(refused.wait()).rejects.toMatchObject({ code: 'too_large', hint: /./ })
  const [result] = await daemon
    .client()
    .rollouts.map([1], async () => ({ reward: 1, data: tooLarge }), { from: await daemon.image() })
    .wait()
  expect(result).toMatchObject({ outcome: 'episode_error', reward: null })
  expect(result?.error).toContain('bytes')
})

test('results of 100 MB together wait until they are read, also where the reader stopped', async () => {
  const data = 'd'.repeat(2 * MIB)
  const tasks = Array.from({ length: 50 }, (_, id) => ({ id }))
  const options = { from: await daemon.image(), concurrency: 8 }
  const run = daemon.client().rollouts.map(tasks, async () => ({ reward: 1, data }), options)
  const reading = run.results()
  const keys = [(await reading.next()).value?.key]
  expect(await run.wait()).toHaveLength(50)
  // The trainer that stopped goes on where it was, though the run is over.
  for await (const row of reading) {
    keys.push(row.key)
    expect(await run.data(row)).toBe(data)
  }
  expect(new Set(keys).size).toBe(50)
})

test('tasks without an end are run as they come, and let go of when the run is cancelled', async () => {
  let given = 0
  let isClosed = false
  function* endless() {
    try {
      for (;;) yield { id: `t${given++}` }
    } finally {
      isClosed = true
    }
  }
  const run = daemon.client().rollouts.map(endless(), async () => ({ reward: 1 }), {
    from: await daemon.image(),
    concurrency: 4,
  })
  let rows = 0
  for await (const { outcome } of run) {
    expect(outcome).toBe('graded')
    if (++rows === 20) break
  }
  await run.cancel()
  const { tasks, done } = (await run.view()).counts
  const all = await run.wait().catch((error: unknown) => error)
  if (all instanceof SandlotError) throw all
  // The last request that puts tasks may still be under way.
  await run.submitted.catch(() => undefined)
  expect(isClosed).toBe(true)
  const { counts, state } = await run.view()
  expect(state).toBe('finished')
  expect(counts.done).toBe(counts.tasks)
  expect(counts.tasks).toBeGreaterThanOrEqual(tasks)
  expect(done).toBeGreaterThanOrEqual(20)
  expect(given).toBeGreaterThanOrEqual(counts.tasks)
})
