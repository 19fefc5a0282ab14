import type { RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { addressOf, type ScriptedRun, scriptedRun } from '../simulation/scripted-run.ts'
import { standingOf } from './standing.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 1, held: [] } as const

function started(spec: Partial<RunCreate> = {}, tasks = 3): ScriptedRun {
  const script = scriptedRun({ concurrency: 2, ...spec })
  script.put(tasks)
  return script
}

function standing(script: ScriptedRun, index: number) {
  const episode = script.run.live.get(index)
  if (!episode) throw new Error('it is not live')
  return standingOf(script.run, episode)
}

function ready(script: ScriptedRun, episode: number): void {
  const sandbox = `sb_${episode}`
  script.tell({ type: 'sandbox_ready', episode, attempt: 1, sandbox, node: 'n', createMs: 5 })
}

test('an episode says in each phase where it stands and what it waits for', () => {
  const script = started()
  expect(standing(script, 1)).toMatchObject({
    ...{ key: 'b', state: 'queued', phase: 'queued', attempt: 0, progress: [], ahead: 1 },
    waits: 'a worker: the run has none',
  })
  script.tell(worker)
  expect(standing(script, 2)).toMatchObject({
    ...{ state: 'queued', ahead: 0, waits: 'a slot: all 2 of its run are taken' },
  })
  expect(standing(script, 0)).toMatchObject({
    ...{ state: 'running', phase: 'creating', waits: expect.stringContaining('being created') },
    progress: [{ attempt: 1, phase: 'creating', sandbox: null, worker: null }],
  })
  ready(script, 0)
  expect(standing(script, 0).waits).toBe('the worker w to begin with it')
  ready(script, 1)
  expect(standing(script, 1)).toMatchObject({
    ...{ phase: 'ready', waits: 'a free worker: all 1 slots of 1 are taken' },
  })
  const offer = addressOf(script.last('offer_lease'))
  script.tell({ type: 'lease_taken', ...offer })
  expect(standing(script, 0)).toMatchObject({
    ...{ phase: 'agent', waits: null, sandbox: 'sb_0' },
    progress: [{ worker: { name: 'w', goneMs: null }, dueMs: script.nowMs + 900_000 }],
  })
  script.tell({ type: 'model_started', ...offer })
  expect(standing(script, 0).waits).toBe('the model to answer')
  script.tell({ type: 'model_ended', ...offer })
  script.tell({ type: 'worker_detached', worker: 'w' })
  expect(standing(script, 0)).toMatchObject({
    waits: 'the worker w, whose connection is gone, to come back',
    progress: [{ worker: { goneMs: script.nowMs } }],
  })
})

test('what is queued says what stands between it and its sandbox', () => {
  const script = started({ ahead: 1, concurrency: 1 }, 2)
  script.tell(worker)
  script.tell({ type: 'pause', cause: 'paused by a person' })
  expect(standing(script, 1).waits).toBe('the run to be resumed: paused by a person')
  script.tell({ type: 'resume' })
  const lease = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...lease, report: { kind: 'returned', reward: 1 } })
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  expect(standing(script, 0)).toMatchObject({
    ...{ phase: 'releasing', waits: 'its sandbox to be given back' },
  })
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(standing(script, 1).waits).toContain('results to be read: 1 or more are unread')
  script.tell({ type: 'results_read', rows: 1 })
  expect(standing(script, 1).phase).toBe('creating')

  const full = started({ concurrency: 9 }, 3)
  full.tell({ type: 'node_capacity', node: 'n', sandboxes: 2, creating: 1 })
  full.tell(worker)
  expect(standing(full, 1).waits).toContain('sandboxes that are being created: 1 at once')
  ready(full, 0)
  ready(full, 1)
  expect(standing(full, 2).waits).toContain('room: the machine has none')
})

test('what was tried before is there, with the wait before it is tried again', () => {
  const script = started({ retry: { model: 1 } }, 1)
  script.tell(worker)
  const lease = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...lease, report: { kind: 'model_failed', cause: ['503'] } })
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(standing(script, 0)).toMatchObject({
    ...{ state: 'queued', phase: 'backoff', attempt: 1, progress: [], ahead: null },
    ...{ waits: expect.stringContaining('tried again'), error: '503' },
    attempts: [{ attempt: 1, outcome: 'model_error', cause: ['503'] }],
  })
})
