import { groupSpec } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { nextDueMs } from '../run/advance.ts'
import { loadRun, saveRun } from '../run/saved.ts'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

type Spec = Parameters<typeof scriptedRun>[0] & {}
const noRetry = { infra: 0, model: 0, grade: 0, timeout: 0 }
const worker = { type: 'worker_attached', worker: 'w', slots: 64, held: [] } as const

/** A run with groups, a worker and as many prompts `a`, `b`, …; what can start has started. */
function grouped(group: Parameters<typeof groupSpec.parse>[0], more: Spec = {}, prompts = 1) {
  const script = scriptedRun({
    concurrency: 64,
    retry: noRetry,
    ...more,
    group: groupSpec.parse(group),
  })
  script.tell(worker)
  if (prompts > 0) script.put(prompts)
  begin(script)
  return script
}

/** Brings every attempt that was admitted as far as its worker's start. */
function begin(script: ScriptedRun): void {
  for (const episode of [...script.run.live.values()]) {
    if (episode.phase !== 'creating') continue
    const address = { episode: episode.index, attempt: episode.attempt }
    const sandbox = `sb_${episode.index}_${episode.attempt}`
    script.tell({ type: 'sandbox_ready', ...address, sandbox, node: 'n', createMs: 5 })
    const { token } = episode.current ?? {}
    script.tell({ type: 'lease_taken', ...address, token: token ?? 0 })
  }
}

function report(script: ScriptedRun, index: number, report: object): void {
  const episode = script.run.live.get(index)
  const address = { episode: index, attempt: episode?.attempt ?? 0 }
  const token = episode?.current?.token ?? 0
  script.tell({ type: 'reported', ...address, token, report: report as never })
}

/** The member's result, and its sandbox's end. */
function end(script: ScriptedRun, index: number, said: object = { kind: 'returned', reward: 1 }) {
  report(script, index, said)
  tearDown(script, index)
}

function tearDown(script: ScriptedRun, index: number): void {
  const episode = script.run.live.get(index)
  const sandbox = episode?.current?.sandbox ?? null
  const address = { episode: index, attempt: episode?.attempt ?? 0 }
  script.tell({ type: 'torn_down', ...address, sandbox })
}

const threw = { kind: 'threw', cause: ['as planned'] }
const outcomes = (script: ScriptedRun) =>
  Object.fromEntries(script.rows.map(({ key, outcome }) => [key, outcome]))

function checkReplay(script: ScriptedRun): void {
  const text = textOf(script.run)
  expect(textOf(script.replayed())).toBe(text)
  expect(textOf(loadRun(JSON.parse(JSON.stringify(saveRun(script.run)))))).toBe(text)
}

test('a prompt becomes size + extra members, each with its key, index and seed', () => {
  const script = grouped({ size: 3, extra: 1 }, {}, 2)
  const episodes = [...script.run.live.values()]
  expect(episodes.map(({ key, index, member }) => [key, index, member])).toEqual([
    ['a#0', 0, 0],
    ['a#1', 1, 1],
    ['a#2', 2, 2],
    ['a#3', 3, 3],
    ['b#0', 4, 0],
    ['b#1', 5, 1],
    ['b#2', 6, 2],
    ['b#3', 7, 3],
  ])
  expect(new Set(episodes.map(({ seed }) => seed)).size).toBe(8)
  expect(script.last('offer_lease')).toMatchObject({ key: 'b#3', group: 'b', member: 3 })
  checkReplay(script)
})

test('a group is complete with size valid results, and what still runs is cancelled', () => {
  const script = grouped({ size: 2, extra: 1 })
  end(script, 2)
  expect(script.groups).toEqual([])
  script.pass(7_000)
  end(script, 0)
  expect(script.groups).toMatchObject([
    {
      ...{ group: 'a', state: 'complete', reason: 'size', error: null, members: 3 },
      outcomes: { graded: 2 },
      episodes: [script.rows[0]?.episode, script.rows[1]?.episode],
    },
  ])
  expect(script.last('cancel_worker').cause).toBe('its group is complete with 2 results')
  tearDown(script, 1)
  expect(outcomes(script)).toEqual({
    'a#0': 'graded',
    'a#1': 'cancelled_quorum',
    'a#2': 'graded',
  })
  // What it took is told, and it is no sample.
  expect(script.row()).toMatchObject({ valid: false, reward: null, phases: { agentMs: 7_000 } })
  expect(script.run.groups.size).toBe(0)
  expect(script.run.totals.groups).toMatchObject({ members: 3, stragglers: 1 })
  checkReplay(script)
})

test('a result that was there in time but came after the last that counts is a row, and does not count', () => {
  const script = grouped({ size: 1, extra: 1 })
  report(script, 0, { kind: 'returned', reward: 1 })
  end(script, 1)
  tearDown(script, 0)
  expect(outcomes(script)).toEqual({ 'a#0': 'graded', 'a#1': 'graded' })
  expect(script.groups).toMatchObject([{ state: 'complete', episodes: [script.rows[0]?.episode] }])
})

test('need alone does not suffice before the cut, and does from it on', () => {
  const script = grouped({ size: 3, need: 2, cut: { after: '10s' } })
  end(script, 0)
  end(script, 1)
  script.pass(9_500)
  expect(script.groups).toEqual([])
  script.pass(500)
  expect(script.groups).toMatchObject([
    { state: 'complete', reason: 'cut', outcomes: { graded: 2 } },
  ])
  tearDown(script, 2)
  expect(script.row()).toMatchObject({ key: 'a#2', outcome: 'cancelled_quorum' })
  checkReplay(script)
})

test('after a cut that came too early for it, a group is complete with the next that it needs', () => {
  const script = grouped({ size: 3, need: 2, cut: { after: '10s' } })
  end(script, 0)
  script.pass(20_000)
  expect(script.groups).toEqual([])
  end(script, 1)
  expect(script.groups).toMatchObject([{ reason: 'cut' }])
})

test('the time of a cut begins when the last member starts', () => {
  const script = grouped({ size: 3, need: 1, cut: { after: '10s' } }, { concurrency: 1 })
  end(script, 0)
  begin(script)
  script.pass(60_000)
  expect(script.groups).toEqual([])
  end(script, 1)
  begin(script)
  script.pass(9_500)
  expect(script.groups).toEqual([])
  script.pass(500)
  expect(script.groups).toMatchObject([{ reason: 'cut', outcomes: { graded: 2 } }])
})

test('nobody is called slow for the time in which the run stood still', () => {
  const script = grouped({ size: 2, need: 1, cut: { after: '10s' } })
  end(script, 0)
  script.pass(5_000)
  script.tell({ type: 'pause', cause: 'lunch' })
  script.pass(60_000)
  script.tell({ type: 'resume' })
  script.pass(2_000)
  // Recorded, so that it is known that the coordinator was there until now.
  script.tell({ type: 'policy_version_set', version: 1 })
  script.nowMs += 3_600_000
  script.tell({ type: 'recovered', recordedThrough: 0 })
  script.tell({ ...worker, held: [script.run.live.get(1)?.current?.token ?? 0] })
  script.pass(2_500)
  expect(script.groups).toEqual([])
  script.pass(500)
  expect(script.groups).toMatchObject([{ reason: 'cut' }])
  checkReplay(script)
})

test('masked members do not vote: with too few that can come the group fails at once, and says why', () => {
  const script = grouped({ size: 4, need: 3 })
  end(script, 0, threw)
  expect(script.groups).toEqual([])
  end(script, 1, threw)
  expect(script.groups).toMatchObject([
    {
      ...{ state: 'failed', reason: 'unreachable', episodes: [] },
      error: 'at most 2 of the 3 results that it needs can come: episode_error 2',
    },
  ])
  tearDown(script, 2)
  tearDown(script, 3)
  expect(outcomes(script)).toMatchObject({ 'a#2': 'cancelled_quorum', 'a#3': 'cancelled_quorum' })
  // Stragglers are those of groups that are used.
  expect(script.run.totals.groups).toMatchObject({ members: 0, stragglers: 0 })
})

test('with need, a group whose members have all ended is complete though some failed', () => {
  const script = grouped({ size: 3, need: 2 })
  end(script, 0)
  end(script, 1, threw)
  expect(script.groups).toEqual([])
  end(script, 2)
  expect(script.groups).toMatchObject([
    { state: 'complete', reason: 'rest', outcomes: { graded: 2, episode_error: 1 } },
  ])
})

test('drop-group drops the group, with its rows recorded', () => {
  const script = grouped({ size: 3 }, { policy: { episode_error: 'drop-group' } })
  end(script, 0)
  end(script, 1, threw)
  expect(script.row()).toMatchObject({ outcome: 'episode_error', dropped: true, valid: false })
  expect(script.groups).toMatchObject([
    { state: 'failed', reason: 'dropped', error: 'the policy drop-group met "a#1"', episodes: [] },
  ])
  tearDown(script, 2)
  expect(outcomes(script)).toMatchObject({ 'a#0': 'graded', 'a#2': 'cancelled_quorum' })
})

test('without groups, drop-group drops the episode', () => {
  const script = scriptedRun({ policy: { episode_error: 'drop-group' } })
  script.tell(worker)
  script.put(1)
  begin(script)
  end(script, 0, threw)
  expect(script.row()).toMatchObject({ dropped: true, valid: false })
})

test('a member that is to be tried again is not, once its group has ended', () => {
  const script = grouped({ size: 1, extra: 1 }, { retry: { infra: 3 } })
  const lost = { cause: 'lost', evidence: 'x' } as const
  const address = { episode: 0, attempt: 1, sandbox: 'sb_0_1' }
  script.tell({ type: 'sandbox_lost', ...address, fate: lost })
  expect(script.run.live.get(0)?.phase).toBe('backoff')
  end(script, 1)
  expect(script.row()).toMatchObject({ key: 'a#0', outcome: 'cancelled_quorum', attempt: 1 })
  expect(script.run.live.size).toBe(0)
})

test('a group that waits for a retry when it ends takes the retry back as well', () => {
  const script = grouped({ size: 1, extra: 1 }, { retry: { model: 3 } })
  report(script, 0, { kind: 'model_failed', cause: ['503'] })
  end(script, 1)
  expect(script.run.live.get(0)?.phase).toBe('releasing')
  tearDown(script, 0)
  expect(script.row()).toMatchObject({ key: 'a#0', outcome: 'cancelled_quorum', attempt: 1 })
  expect(script.row().attempts).toMatchObject([{ outcome: 'model_error' }])
  expect(script.run.groups.size).toBe(0)
})

test('attempts whose policy lags too far are stale, results that do count no more', () => {
  const script = grouped({ size: 3, need: 2, maxLag: 1 }, { concurrency: 2 })
  end(script, 0)
  script.tell({ type: 'policy_version_set', version: 1 })
  begin(script)
  expect(script.run.live.get(2)?.current?.policyVersion).toBe(1)
  script.tell({ type: 'policy_version_set', version: 2 })
  expect(script.last('cancel_worker')).toMatchObject({
    episode: 1,
    cause: 'it began with version 0 of the policy, which is 2 by now',
  })
  expect(script.groups).toEqual([])
  tearDown(script, 1)
  expect(script.rows[1]).toMatchObject({
    outcome: 'cancelled_stale',
    valid: false,
    policyVersion: 0,
  })
  expect(script.groups).toMatchObject([
    {
      ...{ state: 'failed', reason: 'unreachable', policyVersion: 2 },
      error:
        'at most 1 of the 2 results that it needs can come: graded 1, cancelled_stale 1, too old 1',
    },
  ])
  checkReplay(script)
})

test('the worker is told the version that its row has', () => {
  const script = grouped({ size: 1 }, {}, 0)
  script.tell({ type: 'policy_version_set', version: 3 })
  script.put(1)
  const { episode, attempt } = script.last('acquire_sandbox')
  const sandbox = 'sb_x'
  script.tell({ type: 'sandbox_ready', episode, attempt, sandbox, node: 'n', createMs: 5 })
  const offer = script.last('offer_lease')
  script.tell({ type: 'policy_version_set', version: 4 })
  script.tell({ type: 'lease_taken', ...addressOf(offer) })
  end(script, 0)
  expect(offer.policyVersion).toBe(3)
  expect(script.row().policyVersion).toBe(3)
})

test('a group that has begun goes before longer ones, and an open one before none', () => {
  const script = scriptedRun({ concurrency: 1, group: groupSpec.parse({ size: 2 }) })
  script.tell(worker)
  script.put(1, { expectedMs: 10 })
  script.put(1, { expectedMs: 30 })
  script.put(1, { expectedMs: 20 })
  const admitted = () => [...script.run.index.slots.values()].map(({ key }) => key)
  const order: string[] = []
  while (script.run.live.size > 0) {
    order.push(...admitted())
    begin(script)
    end(script, [...script.run.index.slots][0]?.index ?? 0)
  }
  // The first was admitted when nothing else was there.
  expect(order).toEqual(['a#0', 'a#1', 'b#0', 'b#1', 'c#0', 'c#1'])
})

test('a cancelled run fails its groups', () => {
  const script = grouped({ size: 2, need: 1 }, {}, 2)
  end(script, 0)
  script.tell({ type: 'cancel', cause: 'the user cancels' })
  expect(script.groups).toMatchObject([
    { group: 'a', state: 'failed', reason: 'cancelled', error: 'the user cancels' },
    { group: 'b', state: 'failed', reason: 'cancelled' },
  ])
  tearDown(script, 1)
  expect(script.row().outcome).toBe('cancelled_user')
})

test('a quantile of what was seen so far cuts, with what still runs counted as slow', () => {
  const script = grouped({ size: 2, need: 1, cut: { after: 'p90' } }, { concurrency: 1_000 }, 26)
  // 24 groups whose members take 10 s and 12 s; the last members of two others go on and on.
  script.pass(10_000)
  for (let group = 0; group < 26; group++) end(script, group * 2)
  script.pass(1_900)
  // Half has ended: where the nine of ten lie nobody can say.
  expect(script.groups).toEqual([])
  script.pass(100)
  for (let group = 0; group < 24; group++) end(script, group * 2 + 1)
  expect(script.groups.length).toBe(24)
  script.pass(1_500)
  expect(script.groups.slice(24)).toMatchObject([{ reason: 'cut' }, { reason: 'cut' }])
  checkReplay(script)
})

test('a quantile is looked at from time to time, and only while something waits for it', () => {
  const script = grouped({ size: 2, need: 1, cut: { after: 'p90' } })
  const dueMs = nextDueMs(script.run)
  expect(dueMs).toBe(script.nowMs)
  script.tell({ type: 'tick' })
  expect(nextDueMs(script.run)).toBe(script.nowMs + 1_000)
  end(script, 0)
  end(script, 1)
  expect(nextDueMs(script.run)).toBeGreaterThan(script.nowMs + 10_000)
})

test('ahead counts groups that nobody has read, or whose rows nobody has', () => {
  const script = grouped({ size: 1, extra: 1 }, { concurrency: 2, ahead: 1 }, 3)
  end(script, 0)
  tearDown(script, 1)
  expect(script.run.index.slots.size).toBe(0)
  script.tell({ type: 'groups_read', groups: 1 })
  expect(script.run.index.slots.size).toBe(2)
  begin(script)
  end(script, 2)
  tearDown(script, 3)
  expect(script.run.index.slots.size).toBe(0)
  script.tell({ type: 'results_read', rows: 2 })
  expect(script.run.index.slots.size).toBe(0)
  script.tell({ type: 'results_read', rows: 4 })
  expect(script.run.index.slots.size).toBe(2)
  checkReplay(script)
})

const named = (group: string, count: number) => ({ group, count })
const put = (script: ScriptedRun, ...puts: ReturnType<typeof named>[]) => {
  for (const { group, count } of puts) script.put(count, { group })
  begin(script)
}

test('tasks that name their group are its members, whenever they come', () => {
  const script = grouped({ by: 'name', size: 2, extra: 1, need: 1 }, {}, 0)
  put(script, named('x', 1), named('y', 1), named('x', 1))
  const members = [...script.run.live.values()].map(({ key, group, member }) => [
    key,
    group,
    member,
  ])
  expect(members).toEqual([
    ['a', 'x', 0],
    ['b', 'y', 0],
    ['c', 'x', 1],
  ])
  end(script, 0)
  end(script, 2)
  expect(script.groups).toMatchObject([{ group: 'x', reason: 'size', members: 2 }])
  // The third comes too late to be begun.
  put(script, named('x', 1))
  expect(script.row()).toMatchObject({ key: 'd', outcome: 'cancelled_quorum', attempt: 0 })
  expect(() => script.put(1, { group: 'x' })).toThrow('the group "x" has all of its 3 tasks')
  script.tell({ type: 'tasks_closed' })
  end(script, 1)
  expect(script.groups[1]).toMatchObject({ group: 'y', reason: 'rest', members: 1 })
  expect(script.run.groups.size).toBe(0)
  checkReplay(script)
})

test('a group that got too few tasks fails when no more can come', () => {
  const script = grouped({ by: 'name', size: 2 }, {}, 0)
  put(script, named('x', 1))
  end(script, 0)
  expect(script.groups).toEqual([])
  script.tell({ type: 'tasks_closed' })
  expect(script.groups).toMatchObject([
    { state: 'failed', error: 'at most 1 of the 2 results that it needs can come: graded 1' },
  ])
})

test('a put that would give a group too many members, or none a group, changes nothing', () => {
  const script = grouped({ by: 'name', size: 2 }, {}, 0)
  put(script, named('x', 1))
  const before = textOf(script.run)
  expect(() => script.put(2, { group: 'x' })).toThrow('the group "x" has all of its 2 tasks')
  expect(() => script.put(1)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  expect(textOf(script.run)).toBe(before)
  const prompts = grouped({ size: 2 }, {}, 0)
  expect(() => prompts.put(1, { group: 'x' })).toThrow('names a group')
})

test('half of the episodes in error pause the run, also where their groups cancel all others', () => {
  const script = grouped({ size: 8 }, { concurrency: 8 }, 60)
  while (script.run.status === 'running' && script.run.live.size > 0) {
    begin(script)
    const [first] = script.run.index.slots
    end(script, first?.index ?? 0, threw)
    for (const { index } of [...script.run.index.slots]) tearDown(script, index)
  }
  expect(script.run.status).toBe('paused')
})
