import type { GradeSpec } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import { addressOf, scriptedRun, textOf } from '../simulation/scripted-run.ts'
import { nextDueMs } from './advance.ts'
import type { SandboxFate } from './input.ts'

const byCommand: { grade: GradeSpec } = {
  grade: { kind: 'command', command: ['true'], in: 'world' },
}
const byWorker: { grade: GradeSpec } = { grade: { kind: 'worker', in: 'world' } }
const noRetry = { infra: 0, model: 0, grade: 0, timeout: 0 }
const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const

type Script = ReturnType<typeof scriptedRun>

function started(spec: Parameters<typeof scriptedRun>[0] = {}): Script {
  const script = scriptedRun(spec)
  script.tell(worker)
  script.put(1)
  return script
}

/** Ends the newest attempt's teardown. */
function tornDown(script: Script, fate?: SandboxFate): void {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox, ...(fate ? { fate } : {}) })
}

function reported(script: Script, report: object = { kind: 'returned', reward: 1 }): void {
  const lease = addressOf(script.last('offer_lease'))
  script.tell({ type: 'reported', ...lease, report: report as never })
}

function graded(script: Script, result: object = { kind: 'verdict', reward: 0.5 }): void {
  const address = addressOf(script.last('start_grade'))
  script.tell({ type: 'graded', ...address, result: result as never })
}

test('an episode without trouble leaves six events with a grader, five without', () => {
  const ofOne = (script: Script) =>
    script.events.filter((event) => 'episode' in event).map(({ type }) => type)
  const plain = started()
  plain.toAgent()
  reported(plain)
  tornDown(plain)
  expect(ofOne(plain)).toEqual([
    'admitted',
    'sandbox_bound',
    'lease_taken',
    'attempt_ended',
    'torn_down',
  ])
  expect(plain.row()).toMatchObject({ outcome: 'graded', valid: true, reward: 1, key: 'a' })

  const script = started(byCommand)
  script.toAgent()
  reported(script, { kind: 'returned', dataJson: '{"x":1}' })
  expect(script.last('start_grade').dataJson).toBe('{"x":1}')
  graded(script)
  tornDown(script)
  expect(ofOne(script).length).toBe(6)
  expect(script.row()).toMatchObject({ outcome: 'graded', reward: 0.5, data: { x: 1 }, attempt: 1 })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a run ends when it is closed, nothing is live and every row is recorded', () => {
  const script = started()
  script.tell({ type: 'tasks_closed' })
  script.toAgent()
  reported(script)
  tornDown(script)
  expect(script.run.status).toBe('running')
  script.tell({ type: 'results_recorded', through: 1 })
  expect(script.run.status).toBe('finished')
  expect(script.tell({ type: 'cancel', cause: 'late' }).ignored).toBe('the run is finished')
})

test.each([
  ['a reward', { kind: 'returned', reward: 2 }, 'graded', 2],
  ['named rewards', { kind: 'returned', rewards: { a: 1 } }, 'graded', null],
  ['no reward', { kind: 'returned' }, 'episode_error', null],
  ['NaN', { kind: 'returned', reward: Number.NaN }, 'episode_error', null],
  ['text', { kind: 'returned', reward: '1' }, 'episode_error', null],
  ['a budget used up', { kind: 'returned', limit: 'turns' }, 'limit', 0],
  ['a budget used up, with a reward', { kind: 'returned', limit: 'turns', reward: 3 }, 'limit', 3],
  ['an exception', { kind: 'threw', cause: ['boom', 'because'] }, 'episode_error', null],
  ['no result', { kind: 'invalid', cause: ['boom'] }, 'episode_error', null],
  ['a failed model', { kind: 'model_failed', cause: ['503'] }, 'model_error', null],
] as const)('without a grader, %s', (_, report, outcome, reward) => {
  const script = started({ retry: noRetry })
  script.toAgent()
  reported(script, report)
  tornDown(script)
  const row = script.row()
  expect(row).toMatchObject({ outcome, reward, valid: reward !== null || row.rewards !== null })
  expect(row.error === null).toBe(outcome === 'graded')
})

test('with a grader, a reward of the episode is refused, and says why', () => {
  const script = started(byCommand)
  script.toAgent()
  reported(script)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'episode_error', reward: null, valid: false })
  expect(script.row().error).toContain('the run has a grader')
})

const fates = ['oom_limit', 'oom_host', 'lost', 'stopped', 'lifetime'] as const
const sandboxDies: Record<string, Record<(typeof fates)[number], string>> = {
  agent: {
    oom_limit: 'sandbox_oom',
    oom_host: 'infra_lost',
    lost: 'infra_lost',
    stopped: 'cancelled_user',
    lifetime: 'cancelled_user',
  },
  setup: {
    oom_limit: 'setup_error',
    oom_host: 'infra_lost',
    lost: 'infra_lost',
    stopped: 'cancelled_user',
    lifetime: 'cancelled_user',
  },
  grading: {
    oom_limit: 'grade_error',
    oom_host: 'grade_error',
    lost: 'grade_error',
    stopped: 'cancelled_user',
    lifetime: 'cancelled_user',
  },
}

test.each(
  Object.entries(sandboxDies).flatMap(([phase, row]) =>
    fates.map((cause) => [phase, cause, row[cause]] as const),
  ),
)('a sandbox that dies in the phase %s of %s: %s', (phase, cause, outcome) => {
  const script = started({ ...byCommand, retry: noRetry, setup: ['true'] })
  const { episode, attempt } = script.last('acquire_sandbox')
  const bound = { episode, attempt, sandbox: 'sb' }
  script.tell({ type: 'sandbox_ready', ...bound, node: 'n', createMs: 1 })
  if (phase !== 'setup') {
    script.tell({ type: 'setup_done', ...addressOf(script.last('run_setup')) })
    script.tell({ type: 'lease_taken', ...addressOf(script.last('offer_lease')) })
  }
  if (phase === 'grading') reported(script, { kind: 'returned' })
  script.tell({ type: 'sandbox_lost', ...bound, fate: { cause, evidence: 'seen' } })
  expect(script.row()).toMatchObject({ outcome, sandbox: 'sb', attempt: 1 })
  expect(script.row().reward).toBe(outcome === 'sandbox_oom' ? 0 : null)
  expect(script.row().cause).toContain('seen')
  expect(script.run.index.slots.size).toBe(0)
})

test.each([
  ['oom_limit', 'sandbox_oom', 0],
  ['lost', 'grade_error', null],
] as const)(
  'a sandbox that dies of %s before a grader took its lease: %s',
  (cause, outcome, reward) => {
    const script = started({ ...byWorker, retry: noRetry })
    script.toAgent()
    reported(script, { kind: 'returned' })
    const { episode, attempt, sandbox } = script.last('offer_lease')
    const fate = { cause, evidence: 'seen' }
    script.tell({ type: 'sandbox_lost', episode, attempt, sandbox, fate })
    expect(script.row()).toMatchObject({ outcome, reward })
  },
)

test.each([
  [true, 'sandbox_oom', 0],
  [false, 'grade_error', null],
] as const)(
  'over its memory while the daemon grades, by the episode’s doing: %s',
  (byEpisode, outcome, reward) => {
    const script = started({ ...byCommand, retry: noRetry })
    script.toAgent()
    reported(script, { kind: 'returned' })
    const { episode, attempt, sandbox } = script.last('start_grade')
    const fate = { cause: 'oom_limit', evidence: 'seen', byEpisode } as const
    script.tell({ type: 'sandbox_lost', episode, attempt, sandbox, fate })
    expect(script.row()).toMatchObject({ outcome, reward })
  },
)

test.each([
  ['graded', { kind: 'returned', reward: 0 }],
  ['limit', { kind: 'returned', limit: 'turns' }],
  ['episode_error', { kind: 'threw', cause: ['connection lost'] }],
] as const)('a recorded fate overrules %s', (_, report) => {
  const script = started({ retry: noRetry })
  script.toAgent()
  reported(script, report)
  tornDown(script, { cause: 'lost', evidence: 'gone before' })
  expect(script.row()).toMatchObject({ outcome: 'infra_lost', reward: null, valid: false })
})

test('a loss is made again in a new sandbox, and the late result of the old attempt is refused', () => {
  const script = started()
  const old = script.toAgent()
  const { episode, attempt } = old
  const fate = { cause: 'lost', evidence: 'node died' } as const
  script.tell({ type: 'sandbox_lost', episode, attempt, sandbox: old.sandbox, fate })
  expect(script.last('cancel_worker').token).toBe(old.token)
  script.pass(CORE_LIMITS.retryDelayMs)
  expect(script.last('acquire_sandbox').attempt).toBe(2)
  const late = { kind: 'returned', reward: 9 } as const
  expect(script.tell({ type: 'reported', ...addressOf(old), report: late }).ignored).toBeDefined()
  script.toAgent()
  reported(script)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'graded', reward: 1, attempt: 2 })
  expect(script.row().attempts.map(({ outcome }) => outcome)).toEqual(['infra_lost', 'graded'])
})

test('another sandbox of the same attempt, and its end, are nothing to the attempt', () => {
  const script = started()
  const { episode, attempt } = script.last('acquire_sandbox')
  script.toAgent()
  const orphan = { episode, attempt, sandbox: 'sb_orphan' }
  script.tell({ type: 'sandbox_ready', ...orphan, node: 'm', createMs: 1 })
  expect(script.last('release_sandbox')).toMatchObject({ sandbox: 'sb_orphan', node: 'm' })
  script.tell({ type: 'sandbox_lost', ...orphan, fate: { cause: 'lost', evidence: '' } })
  reported(script)
  expect(script.tell({ type: 'torn_down', ...orphan }).ignored).toContain('not the sandbox')
  expect(script.rows).toEqual([])
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'graded', sandbox: `sb_${episode}_${attempt}` })
})

test('the agent’s time is over: graded as it stands, or 0 where nobody grades', () => {
  const plain = started({ timeout: { agent: 10_000 } })
  const lease = plain.toAgent()
  plain.pass(9_500)
  expect(plain.count('cancel_worker')).toBe(0)
  plain.pass(500)
  expect(plain.last('cancel_worker').token).toBe(lease.token)
  tornDown(plain)
  expect(plain.row()).toMatchObject({ outcome: 'agent_timeout', reward: 0, valid: true })
  expect(plain.row().phases.agentMs).toBe(10_000)

  const script = started({ ...byCommand, timeout: { agent: 10_000 } })
  script.toAgent()
  script.pass(10_000)
  graded(script)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'agent_timeout', reward: 0.5, valid: true })
})

test('a grade without a verdict is tried again, then is the grader’s failure, or the agent’s 0', () => {
  for (const timedOut of [false, true]) {
    const script = started({ ...byCommand, timeout: { agent: 10_000, grade: 5_000 } })
    script.toAgent()
    if (timedOut) script.pass(10_000)
    else reported(script, { kind: 'returned' })
    graded(script, { kind: 'verdict', reward: 'great' })
    expect(script.count('start_grade')).toBe(2)
    script.pass(5_000)
    graded(script, { kind: 'timed_out' })
    tornDown(script)
    expect(script.row()).toMatchObject(
      timedOut
        ? { outcome: 'agent_timeout', reward: 0, valid: true }
        : { outcome: 'grade_timeout', reward: null, valid: false },
    )
  }
})

test('a verdict that comes after its try was given up is refused', () => {
  const script = started({ ...byCommand, timeout: { grade: 5_000 } })
  script.toAgent()
  reported(script, { kind: 'returned' })
  const first = addressOf(script.last('start_grade'))
  script.pass(5_000 + CORE_LIMITS.stopMs)
  expect(script.last('cancel_grade').token).toBe(first.token)
  const result = { kind: 'verdict', reward: 9 } as const
  expect(script.tell({ type: 'graded', ...first, result }).ignored).toBe('the lease is over')
  graded(script)
  tornDown(script)
  expect(script.row().reward).toBe(0.5)
})

test('the agent’s clock stands in a model call, and each call has its own time', () => {
  const script = started({ timeout: { agent: 10_000, model: 60_000 }, retry: noRetry })
  const lease = addressOf(script.toAgent())
  script.pass(5_000)
  script.tell({ type: 'model_started', ...lease })
  script.pass(50_000)
  script.tell({ type: 'model_ended', ...lease })
  script.pass(4_000)
  script.tell({ type: 'model_started', ...lease })
  script.pass(59_000)
  expect(script.run.index.counts.model).toBe(1)
  script.pass(1_000)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'model_error', valid: false, reward: null })
  expect(script.row().phases).toMatchObject({ agentMs: 9_000, modelMs: 110_000 })
})

test.each([
  [
    'lag of its event loop',
    (script: Script) => {
      script.tell({ type: 'worker_renewed', worker: 'w', lagMs: 8_000 })
    },
  ],
  [
    'a dropped connection',
    (script: Script) => {
      script.tell({ type: 'worker_detached', worker: 'w' })
      script.pass(8_000)
      script.tell({ ...worker, held: [script.last('offer_lease').token] })
    },
  ],
  [
    'a coordinator that was away',
    (script: Script) => {
      script.tell({ type: 'policy_version_set', version: 1 }) // the last that is recorded
      script.nowMs += 8_000
      script.tell({ type: 'recovered', recordedThrough: 0 })
      script.tell({ ...worker, held: [script.last('offer_lease').token] })
    },
  ],
] as const)('the agent’s clock leaves out %s', (_, disturb) => {
  const script = started({ timeout: { agent: 20_000 } })
  script.toAgent()
  script.pass(5_000)
  const before = script.nowMs
  disturb(script)
  const lagMs = script.nowMs === before ? 8_000 : script.nowMs - before
  script.pass(before + 15_000 + 8_000 - script.nowMs - 1_000)
  expect(script.run.index.counts.agent).toBe(1)
  script.pass(1_000)
  expect(script.run.index.counts.agent).toBe(0)
  expect(lagMs).toBe(8_000)
  tornDown(script)
  expect(script.row().phases.agentMs).toBe(20_000)
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('the total time ends the phase that runs, and the time for a worker is not in it', () => {
  const script = scriptedRun({ timeout: { total: 30_000 }, retry: noRetry })
  script.tell({ ...worker, slots: 1 })
  script.put(2)
  const [first, second] = [0, 1].map((episode) => ({ episode, attempt: 1, node: 'n', createMs: 1 }))
  script.tell({ type: 'sandbox_ready', sandbox: 'sb_a', ...first } as never)
  script.tell({ type: 'sandbox_ready', sandbox: 'sb_b', ...second } as never)
  const lease = addressOf(script.last('offer_lease'))
  script.tell({ type: 'lease_taken', ...lease })
  script.pass(20_000)
  script.tell({ type: 'model_started', ...lease })
  script.pass(10_000)
  script.tell({ type: 'torn_down', episode: 0, attempt: 1, sandbox: 'sb_a' })
  expect(script.row()).toMatchObject({ outcome: 'model_error' })
  script.tell({ type: 'lease_taken', ...addressOf(script.last('offer_lease')) })
  script.pass(29_500)
  expect(script.run.index.counts.agent).toBe(1)
  script.pass(500)
  script.tell({ type: 'torn_down', episode: 1, attempt: 1, sandbox: 'sb_b' })
  expect(script.row()).toMatchObject({ outcome: 'agent_timeout', reward: 0 })
})

test('three workers that died make it the episode’s error, and no retry is spent before', () => {
  const script = started({ retry: noRetry })
  for (let death = 0; death < 3; death++) {
    script.toAgent()
    script.tell({ type: 'worker_attached', worker: `w${death}`, slots: 8, held: [] })
    const victim = script.last('offer_lease').worker
    script.tell({ type: 'worker_lost', worker: victim, cause: 'killed', died: true })
    tornDown(script)
  }
  expect(script.row()).toMatchObject({ outcome: 'episode_error', attempt: 3, valid: false })
  expect(script.row().attempts.map(({ outcome }) => outcome)).toEqual([null, null, 'episode_error'])
})

test('a worker that says good-bye is not counted among those that died', () => {
  const script = started()
  for (let death = 0; death < 5; death++) {
    script.toAgent()
    script.tell({ type: 'worker_attached', worker: `w${death}`, slots: 8, held: [] })
    const victim = script.last('offer_lease').worker
    script.tell({ type: 'worker_lost', worker: victim, cause: 'bye', died: false })
    tornDown(script)
  }
  expect(script.rows).toEqual([])
  expect(script.run.live.get(0)?.attempt).toBe(6)
})

test('a worker that is not heard for a lease’s life is lost; without one the run waits', () => {
  const script = started()
  script.toAgent()
  script.passInSilence(CORE_LIMITS.leaseMs - 1_000)
  script.tell({ type: 'worker_renewed', worker: 'w' })
  script.passInSilence(CORE_LIMITS.leaseMs - 500)
  expect(script.run.status).toBe('running')
  script.passInSilence(500)
  expect(script.run.status).toBe('waiting')
  expect(script.last('drop_worker').worker).toBe('w')
  expect(script.count('release_sandbox')).toBe(1)
  tornDown(script)
  script.pass(10_000)
  expect(script.count('acquire_sandbox')).toBe(1)
  script.tell(worker)
  expect(script.count('acquire_sandbox')).toBe(2)
})

test('a lease that its worker does not hold after a reconnect: offered again if it never had it', () => {
  const script = started()
  const { episode, attempt } = script.last('acquire_sandbox')
  script.tell({ type: 'sandbox_ready', episode, attempt, sandbox: 'sb', node: 'n', createMs: 1 })
  const first = script.last('offer_lease')
  script.tell(worker)
  const second = script.last('offer_lease')
  expect(second.token).not.toBe(first.token)
  expect(second.sandbox).toBe('sb')
  script.tell({ type: 'lease_taken', ...addressOf(second) })
  script.tell(worker)
  expect(script.last('release_sandbox').sandbox).toBe('sb')
})

test('a function grader gets a lease of its own, and any worker may have it', () => {
  const script = started(byWorker)
  script.toAgent()
  reported(script, { kind: 'returned', dataJson: '[1]' })
  const lease = script.last('offer_lease')
  expect(lease).toMatchObject({ phase: 'grade', dataJson: '[1]', attempt: 1 })
  script.tell({ type: 'lease_taken', ...addressOf(lease) })
  script.tell({ type: 'worker_attached', worker: 'other', slots: 1, held: [] })
  script.tell({ type: 'worker_lost', worker: 'w', cause: 'killed', died: true })
  expect(script.last('offer_lease')).toMatchObject({ phase: 'grade', worker: 'other', attempt: 1 })
  reported(script, { kind: 'returned', reward: 0.25 })
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'graded', reward: 0.25, attempt: 1 })
})

test.each([
  ['caller', 'task_invalid'],
  ['platform', 'infra_create'],
] as const)('no sandbox for the fault %s: %s', (fault, outcome) => {
  const script = started({ retry: noRetry })
  const { episode, attempt } = script.last('acquire_sandbox')
  script.tell({ type: 'sandbox_failed', episode, attempt, fault, cause: 'no image' })
  expect(script.row()).toMatchObject({ outcome, error: 'no image', sandbox: null })
})

test('a machine that is full costs no retry, however often it is asked', () => {
  const script = started({ retry: noRetry })
  for (let tries = 1; tries <= CORE_LIMITS.platformStreak + 1; tries++) {
    const { episode, attempt } = script.last('acquire_sandbox')
    expect(attempt).toBe(tries)
    const full = { fault: 'capacity', cause: 'no room for another sandbox' } as const
    script.tell({ type: 'sandbox_failed', episode, attempt, ...full })
    expect(script.run).toMatchObject({ status: 'running', index: { counts: { backoff: 1 } } })
    script.pass(CORE_LIMITS.retryDelayMs)
  }
  const [episode] = script.run.live.values()
  expect(episode?.attempts.at(-1)).toMatchObject({
    ...{ outcome: null, cause: ['no room for another sandbox'] },
  })
  script.toAgent()
  reported(script)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'graded', valid: true })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a creation over time is called off; a release is asked for again, then taken as done', () => {
  const script = started({ retry: noRetry, timeout: { create: 5_000 } })
  script.pass(5_000)
  expect(script.count('release_sandbox')).toBe(1)
  script.pass(CORE_LIMITS.teardownMs * CORE_LIMITS.releaseTries)
  expect(script.count('release_sandbox')).toBe(CORE_LIMITS.releaseTries)
  expect(script.row().outcome).toBe('infra_create')
})

test('a reward is not trusted where the sandbox’s end was never confirmed', () => {
  const script = started({ retry: noRetry })
  script.toAgent()
  reported(script)
  script.pass(CORE_LIMITS.teardownMs * CORE_LIMITS.releaseTries)
  expect(script.row()).toMatchObject({ outcome: 'infra_lost', reward: null })
})

test.each([
  ['workload', 'setup_error'],
  ['platform', 'infra_create'],
] as const)('a set-up that fails by %s: %s', (fault, outcome) => {
  const script = started({ setup: ['true'], retry: noRetry })
  const { episode, attempt } = script.last('acquire_sandbox')
  script.tell({ type: 'sandbox_ready', episode, attempt, sandbox: 's', node: 'n', createMs: 1 })
  const address = addressOf(script.last('run_setup'))
  script.tell({ type: 'setup_failed', ...address, fault, cause: 'exit 1' })
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome, error: 'exit 1' })
})

test('the longest-expected are admitted first, the others in their order', () => {
  const script = scriptedRun({ concurrency: 4 })
  script.put(1, { expectedMs: 1 })
  script.put(1)
  script.put(1, { expectedMs: 9 })
  script.put(1)
  script.tell(worker)
  const admitted = script.events.filter(({ type }) => type === 'admitted')
  expect(admitted.map((event) => 'episode' in event && event.episode)).toEqual([2, 0, 1, 3])
})

test('admission follows what the nodes grant', () => {
  const script = scriptedRun({ concurrency: 8 })
  script.put(8)
  script.tell({ type: 'node_capacity', node: 'n', sandboxes: 3, creating: 2 })
  script.tell(worker)
  expect(script.count('acquire_sandbox')).toBe(2)
  const sandbox = { attempt: 1, node: 'n', createMs: 1 }
  script.tell({ type: 'sandbox_ready', episode: 0, sandbox: 'a', ...sandbox })
  expect(script.count('acquire_sandbox')).toBe(3)
  script.tell({ type: 'sandbox_ready', episode: 1, sandbox: 'b', ...sandbox })
  expect(script.count('acquire_sandbox')).toBe(3)
  script.tell({ type: 'node_capacity', node: 'm', sandboxes: 9, creating: 9 })
  expect(script.count('acquire_sandbox')).toBe(8)
})

test('half of the last 50 in episode_error pauses the run until it is resumed', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.tell(worker)
  script.put(100)
  for (let i = 0; i < 50; i++) {
    expect(script.run.status).toBe('running')
    script.toAgent()
    reported(script, i % 2 === 0 ? { kind: 'threw', cause: ['x'] } : undefined)
    tornDown(script)
  }
  expect(script.run).toMatchObject({ status: 'paused' })
  expect(script.run.reason).toContain('25 of the last 50')
  const acquired = script.count('acquire_sandbox')
  script.pass(60_000)
  expect(script.count('acquire_sandbox')).toBe(acquired)
  script.tell(worker)
  script.tell({ type: 'resume' })
  expect(script.run.status).toBe('running')
  expect(script.count('acquire_sandbox')).toBe(acquired + 1)
})

test('half of the last 50 in model_error pauses the run as well: the others wait for the model', () => {
  const script = scriptedRun({ concurrency: 1, retry: noRetry })
  script.tell(worker)
  script.put(100)
  for (let i = 0; i < 50; i++) {
    script.toAgent()
    const kind = i === 7 ? 'threw' : 'model_failed'
    const fails = i >= 25 || i === 7
    reported(script, fails ? { kind, cause: ['away', 'no route'] } : undefined)
    tornDown(script)
  }
  expect(script.run).toMatchObject({ status: 'paused', index: { counts: { queued: 50 } } })
  expect(script.run.reason).toBe(
    '26 of the last 50 episodes ended in episode_error or model_error, most of them because: away: no route',
  )
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a run that is over does not say any more why it waited', () => {
  const script = started()
  script.tell({ type: 'tasks_closed' })
  script.toAgent()
  reported(script)
  script.tell({ type: 'worker_lost', worker: 'w', cause: 'gone', died: false })
  expect(script.run).toMatchObject({ status: 'waiting', reason: expect.any(String) })
  tornDown(script)
  script.tell({ type: 'results_recorded', through: 1 })
  expect(script.run).toMatchObject({ status: 'finished', reason: null })
})

test('a streak of platform failures pauses the run; one node that dies does not', () => {
  const script = scriptedRun({ concurrency: 30, retry: noRetry })
  script.tell({ ...worker, slots: 30 })
  script.put(60)
  const lost = { cause: 'lost', evidence: '' } as const
  for (let episode = 0; episode < 30; episode++) {
    const bound = { episode, attempt: 1, sandbox: `sb${episode}` }
    script.tell({ type: 'sandbox_ready', ...bound, node: 'n', createMs: 1 })
  }
  for (let episode = 0; episode < 30; episode++) {
    const bound = { episode, attempt: 1, sandbox: `sb${episode}` }
    script.tell({ type: 'sandbox_lost', ...bound, fate: lost })
  }
  expect(script.run.status).toBe('running')
  for (let episode = 30; episode < 50; episode++) {
    const failed = { fault: 'platform', cause: 'store away' } as const
    script.tell({ type: 'sandbox_failed', episode, attempt: 1, ...failed })
  }
  expect(script.run.status).toBe('paused')
  expect(script.run.reason).toContain('failed by the platform')
})

test('cancel ends what is live at once and the queue in bounded steps', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.tell(worker)
  script.put(1)
  const lease = script.toAgent()
  script.put(2_000)
  const step = script.tell({ type: 'cancel', cause: 'enough' })
  expect(script.last('cancel_worker').token).toBe(lease.token)
  expect(step.more).toBe(true)
  expect(nextDueMs(script.run)).toBe(script.run.nowMs)
  expect(step.events.length).toBeLessThan(1_100)
  script.tell({ type: 'tick' })
  tornDown(script)
  expect(script.rows.length).toBe(2_001)
  expect(new Set(script.rows.map(({ outcome }) => outcome))).toEqual(new Set(['cancelled_user']))
  expect(() => script.put(1)).toThrow('takes no more tasks')
  script.tell({ type: 'results_recorded', through: 2_001 })
  expect(script.run.status).toBe('finished')
})

test('same key and content is one task; other content is refused, and changes nothing', () => {
  const script = scriptedRun()
  script.put(2)
  const task = { key: 'a', digest: 'of a', taskJson: '{}', taskBlob: null, seed: 1 }
  const fresh = { ...task, key: 'z' }
  const step = script.tell({ type: 'tasks_put', tasks: [task, fresh, fresh] })
  expect(step.put).toEqual({ added: 1, known: 2 })
  const before = textOf(script.run)
  const conflict = [
    { ...task, key: 'y' },
    { ...task, digest: 'other' },
  ]
  expect(() => script.tell({ type: 'tasks_put', tasks: conflict })).toThrow(
    expect.objectContaining({ code: 'task_conflict', message: expect.stringContaining('"a"') }),
  )
  expect(textOf(script.run)).toBe(before)
})

test.each([
  [{ key: '' }, 'a key has 1 to'],
  [{ key: 'x'.repeat(10_000) }, 'a key has 1 to'],
  [{ seed: 0.5 }, 'a seed is a whole number'],
  [{ taskBlob: 'sha256:x' }, 'either json or blob'],
  [{ expectedMs: Number.NaN }, 'expectedMs'],
])('a task with %j is refused', (wrong, message) => {
  const script = scriptedRun()
  const task = { key: 'a', digest: 'd', taskJson: '{}', taskBlob: null, seed: 1, ...wrong }
  expect(() => script.tell({ type: 'tasks_put', tasks: [task] })).toThrow(message)
})

test('without groups, a name that a task brings is a label of its row', () => {
  const script = scriptedRun()
  script.tell(worker)
  script.put(1, { group: 'prompt-1' })
  script.toAgent()
  reported(script)
  tornDown(script)
  expect(script.row()).toMatchObject({ key: 'a', group: 'prompt-1', member: 0 })
  expect(script.run.groups.size).toBe(0)
})

test('an attempt records the version of the policy it started with', () => {
  const script = started()
  script.tell({ type: 'policy_version_set', version: 3 })
  script.toAgent()
  script.tell({ type: 'policy_version_set', version: 4 })
  reported(script)
  tornDown(script)
  expect(script.row().policyVersion).toBe(3)
})
