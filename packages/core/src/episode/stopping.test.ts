import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import type { Fenced } from '../run/input.ts'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const AGENT_MS = 10_000
const returned = { kind: 'returned', reward: 1 } as const

/** A program whose time is used up, and that was told to stop. */
function stopping(): { script: ScriptedRun; lease: Fenced } {
  const timeout = { agent: AGENT_MS }
  const retry = { infra: 0 }
  const script = scriptedRun({ program: { command: ['true'] }, timeout, retry })
  script.tell({ type: 'worker_attached', worker: 'w', slots: 1, held: [] })
  script.put(1)
  const lease = addressOf(script.toAgent())
  script.pass(AGENT_MS)
  expect(script.count('cancel_worker')).toBe(1)
  return { script, lease }
}

function ended(script: ScriptedRun) {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
  return script.row()
}

test('one of which nothing is heard when it is to end is lost: nobody knows that it had its time', () => {
  const { script } = stopping()
  script.pass(CORE_LIMITS.stopMs)
  expect(ended(script)).toMatchObject({ outcome: 'infra_lost', valid: false, reward: null })
})

test('one that is only not heard to have ended has used up its time', () => {
  const { script, lease } = stopping()
  script.tell({ type: 'reported', ...lease, report: { kind: 'aborted' } })
  expect(ended(script)).toMatchObject({ outcome: 'agent_timeout', valid: true, reward: 0 })
})

test('one that could not be ended or read by a fault of ours is lost', () => {
  const { script, lease } = stopping()
  const report = { kind: 'aborted' } as const
  script.tell({ type: 'reported', ...lease, report, fault: 'platform' })
  expect(ended(script)).toMatchObject({ outcome: 'infra_lost', valid: false, reward: null })
})

test('one that had ended in its time has what it left, however long that is read', () => {
  const { script, lease } = stopping()
  script.tell({ type: 'agent_ended', ...lease, agentMs: AGENT_MS - 1 })
  script.pass(CORE_LIMITS.takeUpMs - 500)
  script.tell({ type: 'reported', ...lease, report: returned })
  expect(ended(script)).toMatchObject({ outcome: 'graded', reward: 1, attempt: 1 })
})

test('one that ended when its time was over has used it up', () => {
  const { script, lease } = stopping()
  const late = script.tell({ type: 'agent_ended', ...lease, agentMs: AGENT_MS })
  expect(late.ignored).toBe('its time was over before')
  script.tell({ type: 'reported', ...lease, report: returned, agentMs: AGENT_MS })
  expect(ended(script)).toMatchObject({ outcome: 'agent_timeout', reward: 0 })
})

test('what can’t be read at all costs nobody a reward: it is tried again', () => {
  const { script, lease } = stopping()
  script.tell({ type: 'agent_ended', ...lease, agentMs: 1 })
  script.pass(CORE_LIMITS.takeUpMs)
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(script.rows).toEqual([])
  expect(script.last('acquire_sandbox').attempt).toBe(2)
})
