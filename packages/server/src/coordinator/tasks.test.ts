import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

describe('putting tasks', () => {
  test('the same key and content is one task', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    const put = (tasks: Parameters<typeof coordinator.putTasks>[2]) =>
      coordinator.putTasks('default', 'a', tasks)
    expect(await put([])).toEqual({ added: 0, known: 0 })
    expect(await put(someTasks(3))).toEqual({ added: 3, known: 0 })
    expect(await put(someTasks(4))).toEqual({ added: 1, known: 3 })
    expect(await put([...someTasks(1, 9), ...someTasks(1, 9)])).toEqual({ added: 1, known: 1 })
    expect((await simulation.view('a')).counts.tasks).toBe(5)
    await simulation.restart()
    expect(await simulation.coordinator.putTasks('default', 'a', someTasks(4))).toEqual({
      added: 0,
      known: 4,
    })
  })

  test('the same key with another content is refused, with all of its request', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await coordinator.putTasks('default', 'a', someTasks(1))
    const conflict = [...someTasks(1, 5), { key: 't0', json: '{"n":"other"}' }]
    await expect(coordinator.putTasks('default', 'a', conflict)).rejects.toMatchObject({
      code: 'task_conflict',
      details: { key: 't0' },
    })
    const twice = [...someTasks(1, 5), { key: 't5', json: '5' }]
    await expect(coordinator.putTasks('default', 'a', twice)).rejects.toMatchObject({
      code: 'task_conflict',
    })
    const regrouped = [{ key: 't0', json: '{"n":0}', group: 'g' }]
    await expect(coordinator.putTasks('default', 'a', regrouped)).rejects.toMatchObject({
      code: 'task_conflict',
    })
    expect((await simulation.view('a')).counts.tasks).toBe(1)
  })

  test('a closed run takes none', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await coordinator.putTasks('default', 'a', someTasks(1))
    await coordinator.closeRun('default', 'a')
    await coordinator.closeRun('default', 'a')
    await expect(coordinator.putTasks('default', 'a', someTasks(1, 1))).rejects.toMatchObject({
      code: 'run_closed',
    })
  })

  test('a run that is closed empty is finished, with no result', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a'), [])
    expect(await simulation.results('a')).toEqual([])
    const page = await simulation.coordinator.getResults('default', 'a', {})
    expect(page).toEqual({ rows: [], cursor: '', done: true })
  })

  test('every size arrives at the worker as it was put', async () => {
    await using simulation = await simulate()
    const { coordinator, engine } = simulation
    const blob = await engine.blobs.put(Buffer.from('"from a blob"'))
    const texts = [0, 10, 255, 256, 257, 5_000, 31_000, 32_000].map((length, i) => ({
      key: `t${i}`,
      json: JSON.stringify('ä'.repeat(length / 2)),
    }))
    const many = Array.from({ length: 300 }, (_, i) => ({
      key: `m${i}`,
      json: JSON.stringify(`${i}:${'x'.repeat(900)}`),
    }))
    await coordinator.createRun('default', runCreate('a', { concurrency: 1_000 }))
    await coordinator.putTasks('default', 'a', [...texts, { key: 'b', blob: blob.digest }])
    await coordinator.putTasks('default', 'a', many)
    // After a restart nothing of it is in memory.
    const restarted = await simulation.restart()
    const seen = new Map<string, string | null>()
    const worker = await startSimulatedWorker(restarted, { run: 'a', slots: 1_000 })
    await until('all are leased', () => worker.held.size === 309)
    for (const { key, taskJson, taskBlob } of worker.held.values()) {
      seen.set(key, taskBlob ?? taskJson)
    }
    const put = [...texts, ...many].map(({ key, json }) => [key, json])
    expect(Object.fromEntries(seen)).toEqual(Object.fromEntries([...put, ['b', blob.digest]]))
    expect((await engine.blobs.pins('run/default/')).pins).toHaveLength(1)
  })

  test('a blob that is not there is refused', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    const blob = `sha256:${'0'.repeat(64)}`
    for (const missing of [blob, 'nonsense']) {
      await expect(
        coordinator.putTasks('default', 'a', [{ key: 'b', blob: missing }]),
      ).rejects.toMatchObject({ code: 'blob_unknown' })
    }
  })
})
