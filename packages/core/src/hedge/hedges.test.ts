import { groupSpec, hedgeSpec } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { loadRun, saveRun } from '../run/saved.ts'
import { type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

type Spec = Parameters<typeof scriptedRun>[0] & {}
const worker = { type: 'worker_attached', worker: 'w', slots: 64, held: [] } as const

/** A run that hedges after ten seconds, with so many tasks. */
function hedged(more: Spec = {}, tasks = 1): ScriptedRun {
  const hedge = hedgeSpec.parse({ after: '10s' })
  const script = scriptedRun({ concurrency: 8, hedge, ...more })
  script.tell(worker)
  script.put(tasks)
  return script
}

const of = (attempt: number, episode = 0) => ({ episode, attempt })
const sandboxOf = ({ episode, attempt }: ReturnType<typeof of>) => `sb_${episode}_${attempt}`

function ready(script: ScriptedRun, address: ReturnType<typeof of>): void {
  const sandbox = sandboxOf(address)
  script.tell({ type: 'sandbox_ready', ...address, sandbox, node: 'n', createMs: 5 })
}

function tokenOf(script: ScriptedRun, { episode, attempt }: ReturnType<typeof of>): number {
  const found = script.effects.findLast(
    (effect) => 'token' in effect && effect.episode === episode && effect.attempt === attempt,
  )
  return found && 'token' in found ? found.token : 0
}

function take(script: ScriptedRun, address: ReturnType<typeof of>): void {
  script.tell({ type: 'lease_taken', ...address, token: tokenOf(script, address) })
}

function report(script: ScriptedRun, address: ReturnType<typeof of>, said: object = {}): void {
  const report = { kind: 'returned', reward: address.attempt, ...said }
  script.tell({
    type: 'reported',
    ...address,
    token: tokenOf(script, address),
    report: report as never,
  })
}

function tearDown(script: ScriptedRun, address: ReturnType<typeof of>, known = true): void {
  const sandbox = known ? sandboxOf(address) : null
  script.tell({ type: 'torn_down', ...address, sandbox })
}

const asked = (script: ScriptedRun) =>
  script.effects.flatMap((effect) => (effect.type === 'acquire_sandbox' ? effect.attempt : []))

function checkReplay(script: ScriptedRun): void {
  const text = textOf(script.run)
  expect(textOf(script.replayed())).toBe(text)
  expect(textOf(loadRun(JSON.parse(JSON.stringify(saveRun(script.run)))))).toBe(text)
}

test('a second attempt is begun beside one whose sandbox takes too long, and goes on if it is first', () => {
  const script = hedged()
  script.pass(9_500)
  expect(asked(script)).toEqual([1])
  script.pass(500)
  expect(asked(script)).toEqual([1, 2])
  expect(script.run.index.slots.size).toBe(2)
  checkReplay(script)
  ready(script, of(2))
  expect(script.last('release_sandbox')).toMatchObject({ ...of(1), sandbox: null })
  expect(script.last('offer_lease')).toMatchObject(of(2))
  checkReplay(script)
  // The first comes up after all: nobody waits for it.
  ready(script, of(1))
  expect(script.last('release_sandbox')).toMatchObject({ ...of(1), sandbox: 'sb_0_1' })
  tearDown(script, of(1))
  take(script, of(2))
  report(script, of(2))
  tearDown(script, of(2))
  expect(script.row()).toMatchObject({
    ...{ outcome: 'graded', reward: 2, attempt: 2, sandbox: 'sb_0_2' },
    attempts: [
      { attempt: 1, outcome: null, cause: ['the other attempt was prepared first'] },
      { attempt: 2, outcome: 'graded' },
    ],
  })
  expect(script.rows.length).toBe(1)
  expect(script.run.totals).toMatchObject({
    ...{ attempts: 2, retries: 0 },
    hedges: { started: 1, won: 1 },
  })
  expect(script.run.hedges.size).toBe(0)
  checkReplay(script)
})

test('the one that straggled goes on if it is first, and the next attempt has a number of its own', () => {
  const script = hedged({ retry: { model: 1 } })
  script.pass(10_000)
  ready(script, of(1))
  expect(script.last('release_sandbox')).toMatchObject(of(2))
  take(script, of(1))
  report(script, of(1), { kind: 'model_failed', cause: ['503'] })
  tearDown(script, of(1))
  script.pass(1_000)
  // The hedge is still being released: there are never three.
  expect(asked(script)).toEqual([1, 2, 3])
  script.pass(15_000)
  expect(asked(script)).toEqual([1, 2, 3])
  tearDown(script, of(2), false)
  ready(script, of(3))
  take(script, of(3))
  report(script, of(3))
  tearDown(script, of(3))
  expect(script.row().attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
    [1, 'model_error'],
    [2, null],
    [3, 'graded'],
  ])
  checkReplay(script)
})

test('where there is no room nothing is hedged; what gets free is for it first', () => {
  const script = hedged({ concurrency: 2 }, 3)
  ready(script, of(1, 1))
  take(script, of(1, 1))
  script.pass(20_000)
  expect(asked(script)).toEqual([1, 1])
  report(script, of(1, 1))
  tearDown(script, of(1, 1))
  expect(script.last('acquire_sandbox')).toMatchObject(of(2, 0))
})

test('one that fails leaves the episode to the other, and no retry pays', () => {
  const script = hedged({ retry: { infra: 1 } })
  script.pass(10_000)
  const failed = { type: 'sandbox_failed', fault: 'platform', cause: 'no disk' } as const
  script.tell({ ...failed, ...of(1) })
  expect(script.run.live.get(0)).toMatchObject({ attempt: 2, phase: 'creating' })
  expect(script.run.live.get(0)?.spent.infra).toBe(0)
  script.tell({ ...failed, ...of(2) })
  expect(script.run.live.get(0)).toMatchObject({ phase: 'backoff', spent: { infra: 1 } })
  script.pass(1_000)
  expect(asked(script)).toEqual([1, 2, 3])
  expect(script.run.live.get(0)?.attempts.map(({ outcome }) => outcome)).toEqual([
    'infra_create',
    'infra_create',
  ])
  checkReplay(script)
})

test('a task that can not be done ends both', () => {
  const script = hedged()
  script.pass(10_000)
  script.tell({ type: 'sandbox_failed', fault: 'caller', cause: 'no such image', ...of(2) })
  expect(script.row()).toMatchObject({
    ...{ outcome: 'task_invalid', attempt: 2 },
    attempts: [{ attempt: 1, outcome: null }, { attempt: 2 }],
  })
  expect(script.last('release_sandbox')).toMatchObject(of(1))
  script.tell({ type: 'tasks_closed' })
  script.tell({ type: 'results_recorded', through: 1 })
  expect(script.run.status).toBe('running')
  tearDown(script, of(1), false)
  expect(script.run.status).toBe('finished')
})

test('a set-up that takes too long is hedged, its creation once and not again', () => {
  const script = hedged({
    setup: ['true'],
    hedge: hedgeSpec.parse({ after: '10s', phases: ['setup'] }),
  })
  script.pass(30_000)
  expect(asked(script)).toEqual([1])
  ready(script, of(1))
  script.pass(10_000)
  expect(asked(script)).toEqual([1, 2])
  ready(script, of(2))
  expect(script.count('run_setup')).toBe(2)
  script.pass(60_000)
  expect(asked(script)).toEqual([1, 2])
  script.tell({ type: 'setup_done', ...of(2), token: tokenOf(script, of(2)) })
  expect(script.last('release_sandbox')).toMatchObject(of(1))
  expect(script.run.live.get(0)).toMatchObject({ attempt: 2, phase: 'offered' })
})

test('an agent is not hedged unless that is asked for', () => {
  const script = hedged()
  ready(script, of(1))
  take(script, of(1))
  script.pass(60_000)
  expect(asked(script)).toEqual([1])
})

const agents = hedgeSpec.parse({ after: '10s', phases: ['agent'] })

/** Both attempts of the one episode work. */
function bothWork(more: Spec = {}): ScriptedRun {
  const script = hedged({ hedge: agents, ...more })
  ready(script, of(1))
  take(script, of(1))
  script.pass(10_000)
  ready(script, of(2))
  take(script, of(2))
  return script
}

test.each([1, 2])('of two agents the first verdict counts (attempt %i)', (first) => {
  const script = bothWork()
  const second = 3 - first
  report(script, of(first))
  expect(script.last('cancel_worker')).toMatchObject({
    ...{ ...of(second), cause: 'the other attempt was first' },
  })
  report(script, of(second))
  tearDown(script, of(second))
  expect(script.rows).toEqual([])
  tearDown(script, of(first))
  expect(script.rows).toMatchObject([{ outcome: 'graded', reward: first, attempt: first }])
  checkReplay(script)
})

test('an agent that throws leaves the episode to the other', () => {
  const script = bothWork()
  report(script, of(1), { kind: 'threw', cause: ['boom'] })
  tearDown(script, of(1))
  expect(script.rows).toEqual([])
  report(script, of(2))
  tearDown(script, of(2))
  expect(script.rows).toMatchObject([
    { outcome: 'graded', attempts: [{ outcome: 'episode_error' }, { outcome: 'graded' }] },
  ])
})

test('a verdict whose sandbox was lost is void, and another attempt is made', () => {
  const script = bothWork()
  report(script, of(2))
  const fate = { cause: 'lost', evidence: 'x' } as const
  script.tell({ type: 'torn_down', ...of(2), sandbox: 'sb_0_2', fate })
  expect(script.rows).toEqual([])
  tearDown(script, of(1))
  script.pass(1_000)
  expect(asked(script)).toEqual([1, 2, 3])
})

test('a worker that dies with both loses both, and the episode is made again', () => {
  const script = bothWork()
  script.tell({ type: 'worker_lost', worker: 'w', cause: 'killed', died: true })
  tearDown(script, of(1))
  tearDown(script, of(2))
  expect(script.run.live.get(0)).toMatchObject({ phase: 'queued', workersLost: 2 })
  script.tell(worker)
  expect(asked(script)).toEqual([1, 2, 3])
  checkReplay(script)
})

test('a worker that dies for the last time with both loses both, and the episode has one row', () => {
  const script = hedged({ hedge: agents, grade: { kind: 'worker', in: 'world' } })
  ready(script, of(1))
  take(script, of(1))
  script.pass(10_000)
  report(script, of(1), { kind: 'returned', reward: undefined, limit: 'turns' })
  take(script, of(1))
  ready(script, of(2))
  take(script, of(2))
  for (const episode of [script.run.live.get(0), script.run.hedges.get(0)]) {
    if (episode) episode.workersLost = 2
  }
  script.tell({ type: 'worker_lost', worker: 'w', cause: 'killed', died: true })
  tearDown(script, of(2))
  tearDown(script, of(1))
  expect(script.rows).toMatchObject([
    { outcome: 'episode_error', reward: null, attempts: [{ attempt: 1 }, { attempt: 2 }] },
  ])
})

test('who cancels ends both, with one row', () => {
  const script = bothWork()
  script.tell({ type: 'cancel', cause: 'the user cancels' })
  tearDown(script, of(1))
  tearDown(script, of(2))
  expect(script.rows).toMatchObject([{ outcome: 'cancelled_user', attempt: 1 }])
  expect(script.run.hedges.size).toBe(0)
})

test('a person who stops the sandbox of one stops the episode', () => {
  const script = bothWork()
  const fate = { cause: 'stopped', evidence: 'by hand' } as const
  script.tell({ type: 'sandbox_lost', ...of(2), sandbox: 'sb_0_2', fate })
  expect(script.count('cancel_worker')).toBe(2)
  tearDown(script, of(1))
  expect(script.rows).toMatchObject([{ outcome: 'cancelled_user', attempt: 2 }])
})

test('a group that ends, ends both of a member', () => {
  const script = bothWork({ group: groupSpec.parse({ size: 1, extra: 1 }) })
  ready(script, of(1, 1))
  take(script, of(1, 1))
  report(script, of(1, 1))
  tearDown(script, of(1, 1))
  expect(script.groups).toMatchObject([{ state: 'complete', members: 2 }])
  tearDown(script, of(2))
  tearDown(script, of(1))
  expect(script.rows.map(({ outcome }) => outcome)).toEqual(['graded', 'cancelled_quorum'])
  expect(script.run.groups.size).toBe(0)
  checkReplay(script)
})

test('a quantile of what creations take hedges those beyond it', () => {
  const script = hedged({ hedge: hedgeSpec.parse({ after: 'p90' }), concurrency: 64 }, 30)
  script.pass(1_000)
  for (let episode = 0; episode < 26; episode++) ready(script, of(1, episode))
  // 26 of 30 took a second: beyond the nine of ten nobody has been yet.
  script.pass(3_000)
  expect(asked(script).filter((attempt) => attempt === 2)).toEqual([])
  ready(script, of(1, 26))
  script.pass(1_500)
  expect(asked(script).filter((attempt) => attempt === 2).length).toBe(3)
})

test('what is hedged is not hedged for the time in which there was no coordinator', () => {
  const script = hedged()
  script.pass(5_000)
  script.tell({ type: 'policy_version_set', version: 1 })
  script.nowMs += 600_000
  script.tell({ type: 'recovered', recordedThrough: 0 })
  script.tell({ ...worker })
  script.pass(4_500)
  expect(asked(script).includes(2)).toBe(false)
  script.pass(500)
  expect(asked(script).includes(2)).toBe(true)
})
