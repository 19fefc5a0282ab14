import { expect, test } from 'vitest'
import { addressOf, scriptedRun, textOf } from '../simulation/scripted-run.ts'
import { reportOf } from './report.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const
const usage = { cpuMs: 1, memoryPeakBytes: 2, diskBytes: 3, networkBytes: 4 }
const of = { episode: 0, node: 'n' } as const

test('a row has the cost of the attempt that counts, a report that of all, with retries beside it', () => {
  const script = scriptedRun({ concurrency: 1, retry: { infra: 1 } })
  script.tell(worker)
  script.put(1)
  script.toAgent()
  const fate = { cause: 'lost', evidence: 'gone', usage: { ...usage, costMicros: 70 } } as const
  script.tell({ type: 'sandbox_lost', ...of, attempt: 1, sandbox: 'sb_0_1', fate })
  script.pass(1_000)
  const offer = script.toAgent()
  script.tell({ type: 'reported', ...addressOf(offer), report: { kind: 'returned', reward: 1 } })
  const end = { type: 'torn_down', episode: 0, attempt: 2, sandbox: 'sb_0_2' } as const
  script.tell({ ...end, usage: { ...usage, costMicros: 50 } })
  expect(script.row()).toMatchObject({ attempt: 2, cost: 50 })
  expect(script.row().usage).toEqual(usage)
  expect(reportOf(script.run, script.nowMs).cost).toEqual({ micros: 120, retriesMicros: 50 })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('where nothing has a price there is no cost, not even none', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.tell(worker)
  script.put(1)
  const offer = script.toAgent()
  script.tell({ type: 'reported', ...addressOf(offer), report: { kind: 'returned', reward: 1 } })
  script.tell({ type: 'torn_down', episode: 0, attempt: 1, sandbox: 'sb_0_1', usage })
  expect(script.row().cost).toBeNull()
  expect(reportOf(script.run, script.nowMs).cost).toBeNull()
})
