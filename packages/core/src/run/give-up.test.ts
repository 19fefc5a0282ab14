import { expect, test } from 'vitest'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const
const noRetry = { infra: 0, model: 0, grade: 0, timeout: 0 }
const stopping = { type: 'give_up', cause: 'the daemon stops' } as const

function started(spec: Parameters<typeof scriptedRun>[0] = {}): ScriptedRun {
  const script = scriptedRun({ retry: noRetry, ...spec })
  script.tell(worker)
  script.put(1)
  return script
}

/** The node grants nothing any more, as in a daemon that drains. */
function closeAdmission(script: ScriptedRun): void {
  script.tell({ type: 'node_capacity', node: 'n', sandboxes: 0, creating: 0 })
}

function tornDown(script: ScriptedRun): void {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
}

const phases: Record<string, (script: ScriptedRun) => void> = {
  creating: () => {},
  setup(script) {
    const { episode, attempt } = script.last('acquire_sandbox')
    script.tell({ type: 'sandbox_ready', episode, attempt, sandbox: 'sb', node: 'n', createMs: 5 })
  },
  agent: (script) => void script.toAgent(),
  model(script) {
    script.tell({ type: 'model_started', ...addressOf(script.toAgent()) })
  },
  grading(script) {
    const lease = addressOf(script.toAgent())
    script.tell({ type: 'reported', ...lease, report: { kind: 'returned' } })
  },
}

test.each(Object.keys(phases))('given up in %s: made again, and no budget pays', (phase) => {
  const script = started({
    setup: ['true'],
    grade: { kind: 'command', command: ['true'], in: 'world' },
  })
  phases[phase]?.(script)
  expect(script.run.index.counts[phase as 'agent']).toBe(1)
  closeAdmission(script)
  script.tell(stopping)
  tornDown(script)
  expect(script.run.index.counts.queued).toBe(1)
  expect(script.rows).toEqual([])
  script.tell({ type: 'node_capacity', node: 'n', sandboxes: 4, creating: 4 })
  expect(script.last('acquire_sandbox').attempt).toBe(2)
  const [episode] = script.run.live.values()
  expect(episode?.spent).toEqual({ infra: 0, model: 0, timeout: 0, policy: 0 })
  expect(episode?.workersLost).toBe(0)
  expect(episode?.attempts).toMatchObject([{ outcome: null, cause: ['the daemon stops'] }])
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a worker is told why its lease ends', () => {
  const script = started()
  const { token } = script.toAgent()
  script.tell(stopping)
  expect(script.last('cancel_worker')).toMatchObject({ token, cause: 'the daemon stops' })
})

test('what is decided already stands', () => {
  const script = started()
  const lease = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...lease, report: { kind: 'returned', reward: 1 } })
  script.tell(stopping)
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'graded', reward: 1, attempt: 1 })
})
