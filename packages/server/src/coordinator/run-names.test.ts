import { describe, expect, test } from 'vitest'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

async function finished(name = 'a') {
  const simulation = await simulate()
  await startRun(simulation, runCreate(name), someTasks(2))
  await startSimulatedWorker(simulation.coordinator, {
    run: name,
    work: () => ({ kind: 'returned', reward: 1 }),
  })
  await simulation.results(name)
  return simulation
}

describe('a run’s name', () => {
  test('attaches to the unfinished run of the same digest', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    const first = await coordinator.createRun('default', runCreate('a'))
    // Concurrency and tags are not part of what a run is.
    const other = runCreate('a', { concurrency: 9, tags: { by: 'me' } })
    const second = await coordinator.createRun('default', other)
    expect([first.attached, second.attached]).toEqual([false, true])
    expect(second.run.id).toBe(first.run.id)
  })

  test('of another digest is refused with what differs', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a', { version: '1' }))
    const other = runCreate('a', { version: '2', from: 'im_b', timeout: { agent: 5 } })
    await expect(coordinator.createRun('default', other)).rejects.toMatchObject({
      code: 'run_differs',
      message: expect.stringMatching(
        /^the run a exists with other options; from: sha256:im_a there, /,
      ),
      details: {
        fields: {
          version: { existing: '"1"', requested: '"2"' },
          from: { existing: 'sha256:im_a', requested: 'sha256:im_b' },
          'timeout.agent': { existing: '15m', requested: '5ms' },
        },
      },
    })
    const fields = await coordinator
      .createRun('default', other)
      .catch((error) => Object.keys(error.details.fields))
    expect(fields).toEqual(['from', 'timeout.agent', 'version'])
  })

  test('belongs to its project', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await expect(coordinator.getRun('other', 'a')).rejects.toMatchObject({ code: 'run_unknown' })
    const created = await coordinator.createRun('other', runCreate('a', { version: '2' }))
    expect(created.attached).toBe(false)
    expect((await coordinator.listRuns('other', {})).items).toHaveLength(1)
  })

  test('of a finished run is refused, attached to or replaced, as asked', async () => {
    await using simulation = await finished()
    const { coordinator } = simulation
    await expect(coordinator.createRun('default', runCreate('a'))).rejects.toMatchObject({
      code: 'run_exists',
    })
    const attached = await coordinator.createRun('default', runCreate('a', { ifExists: 'attach' }))
    expect(attached).toMatchObject({ attached: true, run: { state: 'finished' } })
    const other = runCreate('a', { version: '2', ifExists: 'attach' })
    await expect(coordinator.createRun('default', other)).rejects.toMatchObject({
      code: 'run_differs',
    })
    const replaced = await coordinator.createRun(
      'default',
      runCreate('a', { version: '2', ifExists: 'replace' }),
    )
    expect(replaced).toMatchObject({ attached: false, run: { state: 'open' } })
    expect((await coordinator.getResults('default', 'a', {})).rows).toEqual([])
  })

  test('two at once create one run', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    const both = await Promise.all([
      coordinator.createRun('default', runCreate('a')),
      coordinator.createRun('default', runCreate('a')),
    ])
    expect(both.map(({ attached }) => attached).sort()).toEqual([false, true])
  })

  test('needs an image that is there and a policy that can be', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await expect(
      coordinator.createRun('default', runCreate('a', { from: 'im_none' })),
    ).rejects.toMatchObject({ code: 'image_unknown' })
    await expect(
      coordinator.createRun('default', runCreate('a', { policy: { infra_lost: 'zero' } })),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(
      coordinator.createRun(
        'default',
        runCreate('a', { resources: { memory: { request: 1, limit: 1 } } }),
      ),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    expect((await coordinator.listRuns('default', {})).items).toEqual([])
  })
})

describe('a finished run', () => {
  test('is deleted with all it had; an unfinished one is not', async () => {
    await using simulation = await finished()
    const { coordinator, engine } = simulation
    await coordinator.createRun('default', runCreate('b'))
    await expect(coordinator.deleteRun('default', 'b')).rejects.toMatchObject({
      code: 'run_exists',
    })
    await coordinator.deleteRun('default', 'a')
    await expect(coordinator.getRun('default', 'a')).rejects.toMatchObject({ code: 'run_unknown' })
    await expect(coordinator.deleteRun('default', 'a')).rejects.toMatchObject({
      code: 'run_unknown',
    })
    const { id } = await coordinator.getRun('default', 'b')
    const streams = (await engine.log.list('run/')).streams.map(({ name }) => name)
    expect(streams.filter((name) => !name.includes(id))).toEqual([])
  })

  test('keeps view, report and results over a restart, and nothing else', async () => {
    await using simulation = await finished()
    const { engine } = simulation
    const before = await simulation.view('a')
    const coordinator = await simulation.restart()
    expect(await simulation.view('a')).toEqual(before)
    expect(before.counts).toEqual({ tasks: 2, queued: 0, running: 0, grading: 0, done: 2 })
    expect((await coordinator.getReport('default', 'a')).rewardMean).toBe(1)
    expect((await coordinator.getResults('default', 'a', {})).rows).toHaveLength(2)
    expect(await coordinator.closeRun('default', 'a')).toEqual(before)
    await expect(coordinator.putTasks('default', 'a', someTasks(1))).rejects.toMatchObject({
      code: 'run_closed',
    })
    const { streams } = await engine.log.list('run/')
    expect(streams.map(({ name }) => name.split('/').at(-1))).toEqual(['results'])
  })
})

describe('a list of runs', () => {
  test('is paged by name and filtered by state', async () => {
    await using simulation = await finished('b')
    const { coordinator } = simulation
    for (const name of ['a', 'c', 'd']) await coordinator.createRun('default', runCreate(name))
    await coordinator.pauseRun('default', 'c')
    const names = async (query: Parameters<typeof coordinator.listRuns>[1]) => {
      const { items, next } = await coordinator.listRuns('default', query)
      return [items.map(({ name }) => name).join(), next]
    }
    expect(await names({ limit: 3 })).toEqual(['a,b,c', 'c'])
    expect(await names({ limit: 3, after: 'c' })).toEqual(['d', null])
    expect(await names({ state: 'finished' })).toEqual(['b', null])
    expect(await names({ state: 'paused' })).toEqual(['c', null])
    expect(await names({ state: 'open' })).toEqual(['a,d', null])
  })
})
