import type { RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../limits.ts'
import type { Left } from '../run/run.ts'
import { loadRun, saveRun } from '../run/saved.ts'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const
const noRetry = { infra: 0, model: 0, grade: 0, timeout: 0 }
const failed = { kind: 'threw', cause: ['as planned'] }
const good = { kind: 'returned', reward: 1 }

function started(spec: Partial<RunCreate>, tasks = 1): ScriptedRun {
  const script = scriptedRun({ retry: noRetry, concurrency: 1, ...spec })
  script.tell(worker)
  script.put(tasks)
  return script
}

function report(script: ScriptedRun, said: object): void {
  const lease = addressOf(script.toAgent())
  script.tell({ type: 'reported', ...lease, report: said as never })
}

function tornDown(script: ScriptedRun, left?: Partial<Left>): void {
  const { episode, attempt, sandbox } = script.last('release_sandbox')
  const whole = left && { artifacts: [], leftOut: [], kept: null, ...left }
  script.tell({
    ...{ type: 'torn_down', episode, attempt, sandbox },
    ...(whole ? { left: whole } : {}),
  })
}

const leavesOf = (script: ScriptedRun) => script.last('release_sandbox').leaves

test('nothing is taken out of a sandbox unless it is asked for', () => {
  const script = started({})
  report(script, failed)
  expect(leavesOf(script)).toBeUndefined()
})

test('files are collected however the episode ended, and stand in its row beside those of its worker', () => {
  const file = (name: string, blob: string) => ({ name, blob, sizeBytes: 1 })
  for (const said of [good, failed]) {
    const script = started({ artifacts: ['/out/*'] })
    const lease = addressOf(script.toAgent())
    const artifacts = [file('/out/a', 'sha256:worker')]
    script.tell({ type: 'reported', ...lease, report: said as never, artifacts })
    expect(leavesOf(script)).toEqual({ artifacts: true, snapshot: false })
    tornDown(script, {
      artifacts: [file('/out/a', 'sha256:other'), file('/out/b', 'sha256:b')],
      leftOut: ['/out/c: too large'],
    })
    expect(script.row()).toMatchObject({
      artifacts: [file('/out/a', 'sha256:worker'), file('/out/b', 'sha256:b')],
      ...{ leftOut: ['/out/c: too large'], kept: null },
    })
    expect(textOf(script.replayed())).toBe(textOf(script.run))
  }
})

test('after the agent’s time is over as well', () => {
  const script = started({ artifacts: ['/out/*'], timeout: { agent: 1_000 } })
  script.toAgent()
  script.pass(2_000)
  expect(leavesOf(script)).toEqual({ artifacts: true, snapshot: false })
})

test('so many failed sandboxes are kept and no more; one that could not be kept leaves its place', () => {
  const script = started({ keep: { of: 'failed', max: 2 } }, 6)
  const kept: (boolean | undefined)[] = []
  const end = (said: object, snapshot: string | null) => {
    report(script, said)
    kept.push(leavesOf(script)?.snapshot)
    tornDown(script, leavesOf(script) ? { kept: snapshot } : undefined)
  }
  end(good, null)
  end(failed, null)
  end(failed, 'sn_1')
  end(failed, 'sn_2')
  end(failed, null)
  end(good, null)
  expect(kept).toEqual([undefined, true, true, true, undefined, undefined])
  expect(script.rows.map((row) => row.kept)).toEqual([null, null, 'sn_1', 'sn_2', null, null])
  expect(textOf(script.replayed())).toBe(textOf(script.run))
  expect(textOf(loadRun(JSON.parse(JSON.stringify(saveRun(script.run)))))).toBe(textOf(script.run))
})

test('of any episode where that is asked for, but of none that somebody wanted to be over', () => {
  const script = started({ keep: { of: 'all', max: 5 }, artifacts: ['/x'] }, 2)
  report(script, good)
  expect(leavesOf(script)).toEqual({ artifacts: true, snapshot: true })
  tornDown(script, { kept: 'sn_1' })
  script.toAgent()
  script.tell({ type: 'cancel', cause: 'by a person' })
  expect(leavesOf(script)).toBeUndefined()
})

test('an attempt that is made again leaves nothing, and one whose sandbox is gone has nothing', () => {
  const script = started({
    ...{ keep: { of: 'all', max: 5 }, artifacts: ['/x'], retry: { ...noRetry, model: 1 } },
  })
  report(script, { kind: 'model_failed', cause: ['503'] })
  expect(leavesOf(script)).toBeUndefined()
  tornDown(script)
  script.pass(CORE_LIMITS.retryDelayMsMax)
  const { episode, attempt, sandbox } = script.toAgent()
  const releases = script.count('release_sandbox')
  const fate = { cause: 'oom_limit', evidence: 'killed' } as const
  script.tell({ type: 'sandbox_lost', episode, attempt, sandbox, fate })
  expect(script.row()).toMatchObject({ outcome: 'sandbox_oom', artifacts: [], kept: null })
  expect(script.count('release_sandbox')).toBe(releases)
})

test('before the agent began there are no files to collect, but a sandbox to look into', () => {
  const script = started({ setup: ['false'], artifacts: ['/x'], keep: { of: 'failed', max: 1 } })
  const { episode, attempt } = script.last('acquire_sandbox')
  const ready = { episode, attempt, sandbox: 'sb_1', node: 'n', createMs: 5 }
  script.tell({ type: 'sandbox_ready', ...ready })
  const setup = addressOf(script.last('run_setup'))
  script.tell({ type: 'setup_failed', ...setup, fault: 'workload', cause: 'exit 1' })
  expect(leavesOf(script)).toEqual({ artifacts: false, snapshot: true })
})

test('it has its time before the release is asked for again, and only the first one asks for it', () => {
  const script = started({ keep: { of: 'failed', max: 1 } })
  report(script, failed)
  script.pass(CORE_LIMITS.teardownMs + CORE_LIMITS.leaveMs - 1_000)
  expect(script.count('release_sandbox')).toBe(1)
  script.pass(2_000)
  expect(script.count('release_sandbox')).toBe(2)
  expect(leavesOf(script)).toBeUndefined()
  tornDown(script)
  expect(script.row()).toMatchObject({ outcome: 'episode_error', kept: null })
  expect(script.run.kept).toBe(0)
})

test('a coordinator that comes back takes out what was not taken', () => {
  const script = started({ keep: { of: 'failed', max: 1 } })
  report(script, failed)
  script.tell({ type: 'recovered', recordedThrough: 0 })
  expect(script.count('release_sandbox')).toBe(2)
  expect(leavesOf(script)).toEqual({ artifacts: false, snapshot: true })
})
