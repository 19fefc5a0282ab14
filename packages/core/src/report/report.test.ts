import { expect, test } from 'vitest'
import { addressOf, scriptedRun } from '../simulation/scripted-run.ts'
import { limitingFactor } from './limiting.ts'
import { longestOf } from './longest.ts'
import { reportOf } from './report.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const

test('a retry is counted when it begins, and its cause with an example', () => {
  const script = scriptedRun({ concurrency: 1, retry: { infra: 1 } })
  script.tell(worker)
  script.put(1)
  const { episode, attempt } = script.last('acquire_sandbox')
  script.tell({ type: 'sandbox_failed', episode, attempt, fault: 'platform', cause: 'no disk' })
  const report = () => reportOf(script.run, script.nowMs)
  expect(report()).toMatchObject({ attempts: 1, retries: 0 })
  script.pass(1_000)
  expect(report()).toMatchObject({
    ...{ attempts: 2, retries: 1 },
    causes: [{ outcome: 'infra_create', retried: true, cause: 'no disk', count: 1, example: 'a' }],
  })
  script.tell({ type: 'sandbox_failed', episode, attempt: 2, fault: 'platform', cause: 'no disk' })
  expect(report().causes.map(({ retried, count }) => [retried, count])).toEqual([
    [true, 1],
    [false, 1],
  ])
})

test('the attempts that go on for the longest are named, with what they wait for', () => {
  const script = scriptedRun({ concurrency: 8 })
  expect(longestOf(script.run)).toEqual([])
  script.tell({ ...worker, slots: 1 })
  const admitted: number[] = []
  for (let n = 0; n < 5; n++) {
    script.put(1)
    admitted.push(script.nowMs)
    script.pass(1_000)
  }
  const bound = { attempt: 1, node: 'n', createMs: 1 }
  script.tell({ type: 'sandbox_ready', episode: 1, sandbox: 'b', ...bound })
  script.tell({ type: 'lease_taken', ...addressOf(script.last('offer_lease')) })
  script.tell({ type: 'sandbox_ready', episode: 0, sandbox: 'a', ...bound })
  const heardMs = script.run.workers.get('w')?.renewedAtMs
  expect(longestOf(script.run)).toMatchObject([
    {
      key: 'a',
      attempt: 1,
      sinceMs: admitted[0],
      phase: 'ready',
      waits: expect.stringContaining('a free worker'),
      heardMs: null,
    },
    {
      key: 'b',
      sinceMs: admitted[1],
      phase: 'agent',
      phaseSinceMs: script.nowMs,
      waits: null,
      heardMs,
    },
    { key: 'c', sinceMs: admitted[2], phase: 'creating' },
  ])
})

test('what limits a run: never its pool where nothing is queued', () => {
  const script = scriptedRun({ concurrency: 2 })
  const factor = () => limitingFactor(script.run)
  expect(factor()).toBe('none')
  script.put(3)
  expect(factor()).toBe('worker')
  script.tell(worker)
  expect(factor()).toBe('concurrency')
  script.tell({
    type: 'sandbox_ready',
    episode: 0,
    attempt: 1,
    sandbox: 'sb',
    node: 'n',
    createMs: 1,
  })
  const lease = addressOf(script.last('offer_lease'))
  script.tell({ type: 'reported', ...lease, report: { kind: 'returned', reward: 1 } })
  script.tell({ type: 'torn_down', episode: 0, attempt: 1, sandbox: 'sb' })
  // Two run, none waits, and more may be submitted.
  expect(factor()).toBe('none')
  script.tell({ type: 'tasks_closed' })
  expect(factor()).toBe('tail')
  script.tell({ type: 'pause', cause: 'by hand' })
  expect(factor()).toBe('none')
})
