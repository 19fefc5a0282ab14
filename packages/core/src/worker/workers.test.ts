import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import { addressOf, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const

function atWork() {
  const script = scriptedRun({ retry: { infra: 0 } })
  script.tell(worker)
  script.put(1)
  return { script, lease: script.toAgent() }
}

test('a worker whose connection ended and does not come back is lost after a short grace', () => {
  const { script } = atWork()
  script.tell({ type: 'worker_detached', worker: 'w' })
  script.passInSilence(CORE_LIMITS.reconnectMs - 500)
  expect(script.run.workers.size).toBe(1)
  script.passInSilence(500)
  expect(script.run.workers.size).toBe(0)
  expect(script.count('release_sandbox')).toBe(1)
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  script.tell(worker)
  expect(script.last('acquire_sandbox').attempt).toBe(2)
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a worker that is back within the grace keeps its leases, and is given a lease’s life again', () => {
  const { script, lease } = atWork()
  script.tell({ type: 'worker_detached', worker: 'w' })
  script.passInSilence(CORE_LIMITS.reconnectMs - 500)
  script.tell({ ...worker, held: [lease.token] })
  script.passInSilence(CORE_LIMITS.leaseMs - 500)
  script.tell({
    type: 'reported',
    ...addressOf(lease),
    report: { kind: 'returned', reward: 1 },
  })
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  script.tell({ type: 'torn_down', episode, attempt, sandbox })
  expect(script.row()).toMatchObject({ outcome: 'graded', reward: 1, attempt: 1 })
})

test('one whose connection was gone before the coordinator died has only its grace again, however often that dies', () => {
  const { script } = atWork()
  script.tell({ type: 'worker_detached', worker: 'w' })
  for (let restarts = 0; restarts < 2; restarts++) {
    script.tell({ type: 'recovered', recordedThrough: 0 })
    script.passInSilence(CORE_LIMITS.reconnectMs - 500)
    expect(script.run.workers.size).toBe(1)
  }
  script.passInSilence(500)
  expect(script.run.workers.size).toBe(0)
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('one that is lost with the coordinator has a lease’s life, also when that dies once more', () => {
  const { script } = atWork()
  script.tell({ type: 'recovered', recordedThrough: 0 })
  script.passInSilence(CORE_LIMITS.reconnectMs)
  script.tell({ type: 'recovered', recordedThrough: 0 })
  script.passInSilence(CORE_LIMITS.leaseMs - 500)
  expect(script.run.workers.size).toBe(1)
  script.passInSilence(500)
  expect(script.run.workers.size).toBe(0)
})

test('after a restart of the coordinator a worker has a lease’s life to come back', () => {
  const { script, lease } = atWork()
  script.tell({ type: 'recovered', recordedThrough: 0 })
  script.passInSilence(CORE_LIMITS.leaseMs - 500)
  script.tell({ ...worker, held: [lease.token] })
  expect(script.count('release_sandbox')).toBe(0)
})
