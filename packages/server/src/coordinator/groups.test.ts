import { groupSpec, type Lease, type TaskPut, type WorkerReport } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import {
  overTime,
  runCreate,
  type Simulation,
  simulate,
  someTasks,
  startRun,
} from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const DONE: WorkerReport = { kind: 'returned', reward: 1 }

function grouped(group: Parameters<typeof groupSpec.parse>[0], more = {}) {
  return runCreate('a', { concurrency: 16, group: groupSpec.parse(group), ...more })
}

/** All groups, page by page. */
async function groupsOf({ coordinator }: Simulation, limit = 2) {
  const groups = []
  for (let after = ''; ; ) {
    const page = await coordinator.getGroups('default', 'a', { after, limit })
    groups.push(...page.groups)
    after = page.cursor
    if (page.done) return groups
  }
}

describe('groups', () => {
  test('are read with their rows from a cursor, also after the end and a restart', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, grouped({ size: 2 }), someTasks(5))
    await startSimulatedWorker(coordinator, {
      run: 'a',
      work: ({ member, policyVersion }) => ({ kind: 'returned', reward: member + policyVersion }),
    })
    const rows = await simulation.results('a')
    expect(rows).toHaveLength(10)
    const groups = await groupsOf(simulation)
    expect(groups.map(({ group }) => group).sort()).toEqual(['t0', 't1', 't2', 't3', 't4'])
    const byEpisode = new Map(rows.map((row) => [row.episode, row]))
    for (const group of groups) {
      expect(group).toMatchObject({ state: 'complete', reason: 'size', members: 2, error: null })
      expect(group.rows.map(({ reward }) => reward).sort()).toEqual([0, 1])
      for (const row of group.rows) expect(row).toEqual(byEpisode.get(row.episode))
    }
    await simulation.restart()
    expect(await groupsOf(simulation, 100)).toEqual(groups)
    const rest = await simulation.coordinator.getGroups('default', 'a', {
      after: groups[2]?.cursor ?? '',
    })
    expect(rest.groups).toEqual(groups.slice(3))
    expect(await simulation.view('a')).toMatchObject({
      counts: { tasks: 10, done: 10 },
      groups: { open: 0, complete: 5, failed: 0 },
    })
  })

  test('are waited for, and come before the members that are cut have ended', async () => {
    const releases: (() => void)[] = []
    await using simulation = await simulate()
    const { coordinator, node } = simulation
    await startRun(simulation, grouped({ size: 1, extra: 1 }), someTasks(1))
    const waiting = coordinator.getGroups('default', 'a', { waitMs: 10_000 })
    const release = node.release.bind(node)
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('both are leased', () => worker.held.size === 2)
    const [first, second] = [...worker.held.values()] as [Lease, Lease]
    node.release = async (request) => {
      if (request.sandbox === second.sandbox) await new Promise<void>((go) => releases.push(go))
      return await release(request)
    }
    worker.report(first, DONE)
    const { groups, done } = await waiting
    expect(groups).toMatchObject([{ group: 't0', rows: [{ key: first.key }] }])
    expect(done).toBe(false)
    await until('it is told to stop', () => !worker.held.has(second.lease))
    expect(worker.events.at(-1)).toMatchObject({
      ...{ kind: 'revoked', lease: second.lease },
      cause: 'its group is complete with 1 results',
    })
    await until('its sandbox is asked back', () => releases.length === 1)
    for (const go of releases) go()
    const rows = await simulation.results('a')
    expect(rows.map(({ key, outcome }) => [key, outcome])).toEqual([
      [first.key, 'graded'],
      [second.key, 'cancelled_quorum'],
    ])
  })

  test('are cut when it is time, and told in the report', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(simulation, grouped({ size: 2, need: 1, cut: { after: '10s' } }), someTasks(2))
    const worker = await startSimulatedWorker(coordinator, {
      run: 'a',
      work: ({ key }) => (key.startsWith('t1') || key === 't0#0' ? DONE : undefined),
    })
    const rows = await overTime(simulation, worker)
    expect(rows.map(({ key, outcome }) => [key, outcome])).toEqual([
      ['t0#0', 'graded'],
      ['t0#1', 'cancelled_quorum'],
      ['t1#0', 'graded'],
      ['t1#1', 'graded'],
    ])
    const report = await coordinator.getReport('default', 'a')
    expect(report.groups).toMatchObject({
      ...{ open: 0, complete: 2, failed: 0, reasons: { size: 1, cut: 1 } },
      stragglers: { episodes: 1, share: 0.25 },
    })
    expect(report.groups?.stragglers.timeShare).toBeGreaterThan(0.9)
    expect(await groupsOf(simulation)).toMatchObject([{ reason: 'size' }, { reason: 'cut' }])
  })

  test('of a version that is too old are stopped, and a new one is told to those who begin', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await startRun(
      simulation,
      grouped({ size: 2, need: 1, maxLag: 0 }, { concurrency: 1 }),
      someTasks(1),
    )
    const worker = await startSimulatedWorker(coordinator, { run: 'a' })
    await until('the first is leased', () => worker.held.size === 1)
    const [first] = worker.held.values()
    expect(await coordinator.setPolicyVersion('default', 'a', 7)).toMatchObject({
      policyVersion: 7,
    })
    await until('the second is leased', () => {
      const [lease] = worker.held.values()
      return lease !== undefined && lease.lease !== first?.lease
    })
    const [second] = worker.held.values()
    expect(second).toMatchObject({ key: 't0#1', policyVersion: 7 })
    worker.report(second as Lease, DONE)
    expect(await simulation.results('a')).toMatchObject([
      { key: 't0#0', outcome: 'cancelled_stale', policyVersion: 0 },
      { key: 't0#1', outcome: 'graded', policyVersion: 7 },
    ])
    expect(await groupsOf(simulation)).toMatchObject([
      { state: 'complete', reason: 'rest', policyVersion: 7, rows: [{ key: 't0#1' }] },
    ])
  })

  test('with `ahead`, nothing more begins until they are read, also over a restart', async () => {
    await using simulation = await simulate()
    await startRun(simulation, grouped({ size: 2 }, { concurrency: 1, ahead: 1 }), someTasks(3))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => DONE,
    })
    const read = (after: string) =>
      simulation.coordinator.getGroups('default', 'a', { after, limit: 1 })
    const standing = (groups: number) =>
      until(`${groups} groups are there and nothing runs`, async () => {
        const { counts } = await simulation.view('a')
        return counts.done === groups * 2 && counts.running === 0
      })
    await standing(1)
    expect((await simulation.coordinator.getReport('default', 'a')).limiting).toBe('consumer')
    await until('the first can be read', async () => (await read('')).groups.length === 1)
    const first = await read('')
    await standing(1)
    await simulation.restart()
    await worker.reconnect(simulation.coordinator)
    await read(first.cursor)
    await standing(2)
    await until(
      'the second can be read',
      async () => (await read(first.cursor)).groups.length === 1,
    )
    await read((await read(first.cursor)).cursor)
    expect(await simulation.results('a')).toHaveLength(6)
  })

  test('are refused where the run has none, and a run with others is another one', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', runCreate('a'))
    await expect(coordinator.getGroups('default', 'a', {})).rejects.toMatchObject({
      ...{ code: 'invalid_request', message: 'the run a has no groups' },
    })
    await expect(coordinator.createRun('default', grouped({ size: 2 }))).rejects.toMatchObject({
      ...{
        code: 'run_differs',
        details: { fields: { 'group.size': { existing: null, requested: '2' } } },
      },
    })
    await coordinator.createRun('default', { ...grouped({ size: 2 }), name: 'b' })
    await expect(
      coordinator.createRun('default', { ...runCreate('b'), concurrency: 16 }),
    ).rejects.toMatchObject({
      details: { fields: { 'group.size': { existing: '2', requested: null } } },
    })
  })

  test('take the tasks that they have room for, all of a request or none', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', grouped({ by: 'name', size: 2 }))
    const inGroup = (group: string, ...keys: string[]): TaskPut[] =>
      keys.map((key) => ({ key, json: '{}', group }))
    const put = (...tasks: TaskPut[]) => coordinator.putTasks('default', 'a', tasks)
    expect(await put(...inGroup('x', '1'), ...inGroup('y', '2'))).toEqual({ added: 2, known: 0 })
    await expect(put(...inGroup('y', '3'), ...inGroup('x', '4', '5'))).rejects.toMatchObject({
      ...{ code: 'task_conflict', message: 'the group "x" has all of its 2 tasks' },
    })
    await expect(put({ key: '6', json: '{}' })).rejects.toMatchObject({ code: 'invalid_request' })
    expect((await simulation.view('a')).counts.tasks).toBe(2)
    expect(await put(...inGroup('x', '1', '4'))).toEqual({ added: 1, known: 1 })
  })

  test('of prompts have as many episodes as fit into a run', async () => {
    await using simulation = await simulate()
    const { coordinator } = simulation
    await coordinator.createRun('default', grouped({ size: 256 }))
    await coordinator.putTasks('default', 'a', someTasks(100))
    expect((await simulation.view('a')).counts.tasks).toBe(25_600)
    const tooMany = someTasks(3_900, 100)
    await expect(coordinator.putTasks('default', 'a', tooMany)).rejects.toMatchObject({
      ...{ code: 'too_large', message: 'a run has at most 1000000 episodes' },
    })
  })
})
