import { type MapOptions, type ResultGroup, Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

interface Task {
  readonly id: string
}

const prompts = (count: number): Task[] =>
  Array.from({ length: count }, (_, n) => ({ id: `p${n}` }))
const clientOf = (at: TestDaemon) => new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
const keysOf = ({ rows }: ResultGroup) => rows.map(({ key }) => key).sort()

test('a trainer takes a batch a step, sets its version, and goes on from its checkpoint', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const seeds = new Set<number>()
  const run = client.rollouts.map(
    prompts(5),
    async ({ task, key, group, member, seed, policyVersion }) => {
      seeds.add(seed)
      expect([group, key]).toEqual([task.id, `${task.id}#${member}`])
      return { reward: member, data: { policyVersion } }
    },
    { ...{ name: 'training', from: await at.image() }, concurrency: 2, group: { size: 3 } },
  )
  const checkpoints: string[] = []
  const taken: string[] = []
  for (let step = 1; ; step++) {
    const batch = await run.batch(2)
    if (batch.groups.length === 0) break
    expect(batch).toMatchObject({ failed: 0, stale: 0 })
    for (const group of batch.groups) {
      taken.push(group.group)
      expect(keysOf(group)).toEqual([0, 1, 2].map((member) => `${group.group}#${member}`))
      for (const { policyVersion, data } of group.rows) expect(data).toEqual({ policyVersion })
    }
    checkpoints.push(batch.cursor)
    expect(await run.setPolicyVersion(step)).toMatchObject({ policyVersion: step })
  }
  expect(taken.sort()).toEqual(['p0', 'p1', 'p2', 'p3', 'p4'])
  expect(checkpoints).toHaveLength(3)
  expect(seeds.size).toBe(15)
  // The trainer was killed after its first step: another process reads on.
  const again = await client.rollouts.get('training')
  const rest = await again.batch(10, { from: checkpoints[0] ?? '' })
  expect(rest.groups).toHaveLength(3)
  expect((await again.batch(10)).groups).toEqual([])
  expect(await Array.fromAsync(again.groups({ from: checkpoints[1] ?? '' }))).toHaveLength(1)
  expect(await again.wait()).toHaveLength(15)
  expect((await again.view()).groups).toEqual({ open: 0, complete: 5, failed: 0 })
})

test('a straggler is cut, a masked member does not vote, a dropped group is not delivered', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const run = client.rollouts.map(
    ['slow', 'masked', 'dropped', 'hopeless'].map((id) => ({ id })),
    async ({ group, member, signal }) => {
      if (group === 'slow' && member === 2) {
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        )
      }
      if (group === 'masked' && member === 0) return { limit: 'turns' }
      if (group === 'dropped' && member === 1) throw new Error('as planned')
      if (group === 'hopeless' && member < 2) return { limit: 'turns' }
      return { reward: member }
    },
    {
      ...{ from: await at.image(), concurrency: 12 },
      group: { size: 3, need: 2, cut: { after: '5s' } },
      policy: { limit: 'mask', episode_error: 'drop-group' },
    },
  )
  const groups = new Map<string, ResultGroup>()
  for await (const group of run.groups({ all: true })) groups.set(group.group, group)
  expect(groups.get('slow')).toMatchObject({ state: 'complete', reason: 'cut' })
  expect(keysOf(groups.get('slow') as ResultGroup)).toEqual(['slow#0', 'slow#1'])
  expect(groups.get('masked')).toMatchObject({ state: 'complete', reason: 'rest' })
  expect(keysOf(groups.get('masked') as ResultGroup)).toEqual(['masked#1', 'masked#2'])
  expect(groups.get('dropped')).toMatchObject({ state: 'failed', reason: 'dropped', rows: [] })
  expect(groups.get('hopeless')).toMatchObject({ state: 'failed', reason: 'unreachable', rows: [] })
  const batch = await run.batch(10)
  expect(batch.groups.map(({ group }) => group).sort()).toEqual(['masked', 'slow'])
  expect(batch).toMatchObject({ failed: 2, stale: 0 })
  const rows = new Map((await run.wait({ dropped: true })).map((row) => [row.key, row]))
  expect(rows.size).toBe(12)
  expect(rows.get('slow#2')).toMatchObject({
    outcome: 'cancelled_quorum',
    valid: false,
    reward: null,
  })
  expect(rows.get('dropped#1')).toMatchObject({ outcome: 'episode_error', dropped: true })
  expect((await run.report()).groups).toMatchObject({
    ...{ open: 0, complete: 2, failed: 2 },
    reasons: { cut: 1, rest: 1, dropped: 1, unreachable: 1 },
  })
})

test('tasks that name their group are its members', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const tasks = Array.from({ length: 6 }, (_, n) => ({ id: `t${n}`, kind: n % 2 }))
  const run = client.rollouts.map(tasks, async ({ task }) => ({ reward: task.kind }), {
    from: await at.image(),
    group: { by: ({ kind }) => kind, size: 3 },
  })
  const groups = await Array.fromAsync(run.groups())
  expect(groups.map((group) => [group.group, keysOf(group)]).sort()).toEqual([
    ['0', ['t0', 't2', 't4']],
    ['1', ['t1', 't3', 't5']],
  ])
})

test('what has become too old for the policy before it was read is passed over', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const run = client.rollouts.map(prompts(2), async () => ({ reward: 1 }), {
    ...{ from: await at.image(), concurrency: 1 },
    group: { size: 2, maxLag: 1 },
  })
  await until(async () => (await run.view()).state === 'finished')
  await run.setPolicyVersion(1)
  expect(await run.batch(1)).toMatchObject({ groups: [{ group: 'p0', stale: false }], stale: 0 })
  await run.setPolicyVersion(2)
  expect(await run.batch(1)).toMatchObject({ groups: [], stale: 1 })
  expect(await Array.fromAsync(run.groups())).toEqual([])
  const all = await Array.fromAsync(run.groups({ all: true }))
  expect(all).toMatchObject([{ state: 'complete', stale: true }, { stale: true }])
})

test.each<[string, MapOptions<Task>['group'], string]>([
  ['a need above the size', { size: 2, need: 3 }, 'body.group.need: 3 is more than the size, 2'],
  ['a cut that cuts nothing', { size: 2, cut: { after: '10s' } }, 'needs all of its results'],
  ['a cut of the ordinary', { size: 2, need: 1, cut: { after: 'p10' } }, 'a quantile from'],
  ['a cut at once', { size: 2, need: 1, cut: { after: 1 } }, 'shorter than'],
  ['too many members', { size: 200, extra: 100 }, 'a group has at most 256'],
  ['no size', {} as never, 'body.group.size'],
  ['a group without a name', { size: 2, by: () => '' }, 'the group of task 0 is 0 characters long'],
  ['too many of a name', { size: 1, by: () => 'x' }, 'the group "x" has all of its 1 tasks'],
])('%s is refused', async (_, group, message) => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const run = client.rollouts.map(prompts(2), async () => ({ reward: 1 }), {
    ...{ from: await at.image(), ...(group ? { group } : {}) },
  })
  await expect(run.wait()).rejects.toThrow(message)
})

test('a run that hedges says how often, and what makes no sense is refused', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const start = (hedge: MapOptions<Task>['hedge'] & {}, from: string) =>
    client.rollouts.map(prompts(1), async () => ({ reward: 1 }), { from, hedge })
  const from = await at.image()
  const run = start({ after: 'p95' }, from)
  expect(await run.wait()).toMatchObject([{ outcome: 'graded', attempt: 1 }])
  expect((await run.report()).hedges).toEqual({ started: 0, won: 0 })
  await expect(start({ after: 'soon' }, from).wait()).rejects.toThrow('body.hedge.after')
  await expect(start({ after: '1m', phases: [] }, from).wait()).rejects.toThrow('hedge.phases')
})

test('a batch is a whole number of groups, of a run that has some', async () => {
  await using at = await startTestDaemon()
  await using client = clientOf(at)
  const run = client.rollouts.map(prompts(1), async () => ({ reward: 1 }), {
    from: await at.image(),
  })
  await expect(run.batch(0)).rejects.toThrow('a batch has 0 groups')
  await expect(run.batch(1)).rejects.toThrow('has no groups')
  await run.wait()
})
