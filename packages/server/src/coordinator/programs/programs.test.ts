import type { GradeSpec, ProgramSpec, RunCreate, TaskPut } from '@sandlot/protocol'
import { SandlotError } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import type { NodeExecEnd, NodeExecRequest, PutFilesRequest } from '../../node/port.ts'
import type { SimulatedNodeOptions } from '../simulated/node.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from '../simulated/setup.ts'

const grade = { kind: 'command', in: 'world', command: ['grade'] } satisfies GradeSpec

function programRun(more: Partial<RunCreate> = {}, program: Partial<ProgramSpec> = {}): RunCreate {
  const timeout = { agent: 2_000, grade: 2_000 }
  const retry = { infra: 0, grade: 0 }
  const command = ['solve', 'it']
  return runCreate('a', {
    kind: 'program',
    program: { command, ...program },
    timeout,
    retry,
    ...more,
  })
}

async function ran(
  node: SimulatedNodeOptions,
  run: RunCreate = programRun(),
  tasks: readonly TaskPut[] = someTasks(1),
) {
  const simulation = await simulate(node)
  await startRun(simulation, run, tasks)
  return { simulation, rows: await overTime(simulation) }
}

const says = (text: string): Partial<NodeExecEnd> => ({
  stdout: Buffer.from(text),
  stdoutTotalBytes: text.length,
})

describe('without a grader', () => {
  test.each([
    [{ exitCode: 0 }, 'graded', 1],
    [{ exitCode: 3 }, 'graded', 0],
    [{ exitCode: 127 }, 'episode_error', null],
    [{ exitCode: 126 }, 'episode_error', null],
    [{ exitCode: null, signal: 11 }, 'episode_error', null],
  ] as const)('a command that ends with %j is %s', async (end, outcome, reward) => {
    const { simulation, rows } = await ran({ onExec: () => end })
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome, reward }])
  })

  test.each([
    ['0.5', 'graded', 0.5],
    ['{"reward": 1}\n{"reward": 0}', 'episode_error', null],
    ['NaN', 'episode_error', null],
    ['done', 'episode_error', null],
  ])('of one that prints %s the verdict is %s', async (text, outcome, reward) => {
    const run = programRun({}, { reward: { from: 'stdout' } })
    const { simulation, rows } = await ran({ onExec: () => says(text) }, run)
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome, reward }])
  })

  test('a verdict in a file is read when the command has ended, and was removed before', async () => {
    const run = programRun({}, { reward: { from: 'file', paths: ['/r.txt', '/r.json'] } })
    const onRead: SimulatedNodeOptions['onRead'] = ({ path }) =>
      path === '/r.json' ? '{"reward": 1, "style": 0.5}' : undefined
    const { simulation, rows } = await ran({ onRead }, run)
    await using _ = simulation
    expect(rows).toMatchObject([{ reward: 1, rewards: { reward: 1, style: 0.5 } }])
    expect(simulation.node.files[0]?.remove).toEqual(['/r.txt', '/r.json'])
  })

  test('one that uses up its time is agent_timeout, 0, and is ended', async () => {
    const never = hanging()
    const { simulation, rows } = await ran(never)
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome: 'agent_timeout', valid: true, reward: 0 }])
    expect(rows[0]?.phases.agentMs).toBe(2_000)
    expect(rows[0]?.error).toBe('the agent used up its time within 2s')
    expect(simulation.node.killed).toHaveLength(1)
  })
})

describe('with a grader', () => {
  test('what the episode left where the tests come is gone before they come', async () => {
    const cleared = { ...grade, clear: ['/tests'], files: [] }
    const { simulation } = await ran({}, programRun({ grade: cleared }))
    await using _ = simulation
    const grading = simulation.node.files.filter(({ world }) => world === 'grade')
    expect(grading.map(({ clear }) => clear)).toEqual([['/tests']])
  })

  test.each([0, 1, 3])(
    'what exits with %i is graded, and the row says how it ended',
    async (exitCode) => {
      const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) =>
        argv[0] === 'grade' ? { exitCode: 0 } : { exitCode, ...says('as it went') }
      const { simulation, rows } = await ran({ onExec }, programRun({ grade }))
      await using _ = simulation
      expect(rows).toMatchObject([
        { outcome: 'graded', reward: 1, data: { exitCode, signal: null } },
      ])
    },
  )

  test('a command that can’t be run is nobody’s zero, and pauses the run', async () => {
    await using simulation = await simulate({
      onExec: () => ({ exitCode: 127, stderr: Buffer.from('sh: pythn: not found') }),
    })
    await startRun(simulation, programRun({ grade }), someTasks(60))
    await until('the run is paused', async () => (await simulation.view('a')).state === 'paused')
    const { reason } = await simulation.view('a')
    expect(reason).toMatch(/episode_error, most of them because: .*pythn: not found/)
    expect(simulation.node.gradeWorlds.size).toBe(0)
  })

  test('what refuses to start is episode_error', async () => {
    const onExec: SimulatedNodeOptions['onExec'] = () => {
      throw new SandlotError('exec_failed', 'the command did not start: no such file')
    }
    const { simulation, rows } = await ran({ onExec }, programRun({ grade }))
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome: 'episode_error', reward: null, valid: false }])
    expect(rows[0]?.error).toMatch(/no such file/)
  })

  test('one that uses up its time is graded as it stands, with what it said', async () => {
    const never = hanging('so far')
    const { simulation, rows } = await ran(never, programRun({ grade }))
    await using _ = simulation
    expect(rows).toMatchObject([
      { outcome: 'agent_timeout', reward: 1, data: { exitCode: null, signal: 9 } },
    ])
    expect(rows[0]?.artifacts.map(({ name }) => name)).toEqual(['agent.stdout'])
  })

  test('one that does not even end when it is told to is graded all the same', async () => {
    const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) =>
      argv[0] === 'grade' ? {} : new Promise(() => {})
    const { simulation, rows } = await ran({ onExec }, programRun({ grade }))
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome: 'agent_timeout', reward: 1, data: null }])
    expect(rows[0]?.phases.agentMs).toBe(2_000)
  })

  test('one whose sandbox does not answer when it is told to end is lost, and no zero', async () => {
    for (const more of [{}, { grade }]) {
      const { simulation, rows } = await ran(
        { onExec: () => new Promise(() => {}), onKill: () => new Promise(() => {}) },
        programRun(more),
      )
      await using _ = simulation
      expect(rows).toMatchObject([{ outcome: 'infra_lost', valid: false, reward: null }])
      expect(rows[0]?.error).toBe('its sandbox did not answer when it was to end')
    }
  })

  test('what both say is kept', async () => {
    const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) => ({
      ...says(`${argv[0]} out`),
      stderr: Buffer.from(`${argv[0]} err`),
    })
    const { simulation, rows } = await ran({ onExec }, programRun({ grade }))
    await using _ = simulation
    const kept = new Map<string, string>()
    for (const { name, blob } of rows[0]?.artifacts ?? []) {
      const { body } = await simulation.engine.blobs.open(blob as `sha256:${string}`)
      kept.set(name, await new Response(body).text())
    }
    expect([...kept]).toEqual([
      ['agent.stdout', 'solve out'],
      ['agent.stderr', 'solve err'],
      ['grade.stdout', 'grade out'],
      ['grade.stderr', 'grade err'],
    ])
  })

  test.each(['{"reward": 1}\n{"reward": 1}', 'NaN', ''])(
    'a grader that prints %j is grade_error, and what it said is kept',
    async (text) => {
      const stdout: GradeSpec = { ...grade, in: 'clean', reward: { from: 'stdout' } }
      const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) =>
        argv[0] === 'grade' ? { ...says(text), stderr: Buffer.from('why') } : {}
      const { simulation, rows } = await ran({ onExec }, programRun({ grade: stdout }))
      await using _ = simulation
      expect(rows).toMatchObject([{ outcome: 'grade_error', reward: null, valid: false }])
      expect(rows[0]?.artifacts.map(({ name }) => name)).toContain('grade.stderr')
    },
  )

  test('the daemon’s own failure is no zero, however late it comes', async () => {
    const due = Promise.withResolvers<never>()
    await using simulation = await simulate({ onExec: () => due.promise })
    await startRun(simulation, programRun(), someTasks(1))
    await until('it runs', () => simulation.node.started.length === 1)
    simulation.clock.advance(1_950)
    due.reject(new SandlotError('internal', 'the pipe broke'))
    await until('another attempt has begun', () => simulation.node.started.length === 2)
    expect((await simulation.view('a')).counts.done).toBe(0)
  })

  test('the daemon’s own failure costs the policy nothing', async () => {
    const onPut: SimulatedNodeOptions['onPut'] = ({ world }) => {
      if (world === undefined) throw new SandlotError('internal', 'the disk')
    }
    const { simulation, rows } = await ran({ onPut }, programRun({ grade }))
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome: 'episode_error', reward: null, valid: false }])
    expect(simulation.node.started).toEqual([])
  })
})

test('a sandbox that dies under its program is infra_lost, whatever the command came to', async () => {
  const started = Promise.withResolvers<string>()
  await using simulation = await simulate({
    onExec({ sandbox }) {
      started.resolve(sandbox)
      return new Promise(() => {})
    },
  })
  await startRun(simulation, programRun(), someTasks(1))
  simulation.node.kill(await started.promise, 'lost')
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'infra_lost', reward: null }])
})

test('a program finds its task, its files and what it is told; its grader finds the same anew', async () => {
  const puts: PutFilesRequest[] = []
  const execs: NodeExecRequest[] = []
  await using simulation = await simulate({
    onPut: (request) => void puts.push(request),
    onExec(request) {
      execs.push(request)
      return {}
    },
  })
  const blob = (await simulation.engine.blobs.put(Buffer.from('x'))).digest
  const file = (path: string) => ({ path, blob, mode: 0o644 })
  const program = { env: { A: '1', B: '1' }, files: [file('/run'), file('/both')], user: 'agent' }
  const own = { command: ['other'], env: { B: '2' }, files: [file('/own'), file('/both')] }
  const task = { key: 'k', json: '{"q":1}', program: own }
  await startRun(simulation, programRun({ grade, seed: 7 }, program), [task])
  await overTime(simulation)
  const told = {
    SANDLOT_TASK_FILE: '/run/sandlot/task.json',
    ...{ SANDLOT_RUN: 'a', SANDLOT_KEY: 'k', SANDLOT_GROUP: 'k', SANDLOT_MEMBER: '0' },
    ...{ SANDLOT_ATTEMPT: '1', SANDLOT_POLICY_VERSION: '0' },
  }
  expect(execs).toMatchObject([
    { argv: ['other'], env: { A: '1', B: '2', ...told }, user: 'agent' },
    { argv: ['grade'], env: told },
  ])
  expect(execs[0]?.env?.SANDLOT_SEED).toBe(execs[1]?.env?.SANDLOT_SEED)
  const taskFile = { path: '/run/sandlot/task.json', bytes: Buffer.from('{"q":1}') }
  expect(puts).toMatchObject([
    { files: [taskFile] },
    { files: [{ path: '/run' }, { path: '/own' }, { path: '/both' }], of: { user: 'agent' } },
    { world: 'grade', files: [taskFile] },
  ])
})

describe('over a restart of the daemon', () => {
  test('a command that runs is waited for, and not begun again', async () => {
    const running = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<Partial<NodeExecEnd>>()
    await using simulation = await simulate({
      onExec() {
        running.resolve()
        return ended.promise
      },
    })
    await startRun(simulation, programRun(), someTasks(1))
    await running.promise
    await simulation.restart()
    ended.resolve({ exitCode: 0 })
    expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', reward: 1, attempt: 1 }])
    expect(simulation.node.started).toHaveLength(1)
    expect(simulation.node.files).toHaveLength(1)
  })

  test('one whose time is used up meanwhile is ended', async () => {
    const never = hanging()
    await using simulation = await simulate(never)
    await startRun(simulation, programRun(), someTasks(1))
    await until('it runs', () => simulation.node.started.length === 1)
    await simulation.restart()
    expect(await overTime(simulation)).toMatchObject([{ outcome: 'agent_timeout', reward: 0 }])
    expect(simulation.node.killed).toHaveLength(1)
  })

  test('one that ended in its time has its verdict, although that is over when the daemon is back', async () => {
    const ended = Promise.withResolvers<Partial<NodeExecEnd>>()
    await using simulation = await simulate({ onExec: () => ended.promise })
    await startRun(simulation, programRun(), someTasks(1))
    await until('it is told to end', () => {
      if (simulation.isIdle) simulation.clock.advance(100)
      return simulation.node.killed.length === 1
    })
    const restarted = simulation.restart()
    ended.resolve({ exitCode: 0, durationMs: 1_999 })
    await restarted
    expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', reward: 1, attempt: 1 }])
  })

  test('what is not begun is begun once, and each has one result', async () => {
    await using simulation = await simulate()
    await startRun(simulation, programRun({ grade }), someTasks(20))
    await simulation.restart()
    const rows = await overTime(simulation)
    expect(rows.map(({ outcome }) => outcome)).toEqual(rows.map(() => 'graded'))
    expect(rows).toHaveLength(20)
    expect(simulation.node.living.size).toBe(0)
  })
})

test('a run of programs waits for nobody, and takes no worker', async () => {
  await using simulation = await simulate({ onExec: () => new Promise(() => {}) })
  await startRun(simulation, programRun(), someTasks(1))
  await until('it runs', async () => (await simulation.view('a')).state === 'running')
  const request = { run: 'a', worker: `wk_${'w'.repeat(20)}`, slots: 1, held: [] }
  const attached = simulation.coordinator.attachWorker('default', request, { send() {} })
  await expect(attached).rejects.toMatchObject({ code: 'invalid_request' })
  simulation.clock.advance(10 * 60_000)
  expect((await simulation.view('a')).state).toBe('running')
})

test('a run that is cancelled ends its programs', async () => {
  await using simulation = await simulate({ onExec: () => new Promise(() => {}) })
  await startRun(simulation, programRun({ timeout: {} }), someTasks(2))
  await until('both run', () => simulation.node.started.length === 2)
  await simulation.coordinator.cancelRun('default', 'a')
  expect(await overTime(simulation)).toMatchObject([
    { outcome: 'cancelled_user' },
    { outcome: 'cancelled_user' },
  ])
})

test('a program that went with its sandbox need not be ended, and nobody is warned', async () => {
  const onKill = () => {
    throw new SandlotError('sandbox_gone', 'its attempt is over')
  }
  await using simulation = await simulate({ onExec: () => new Promise(() => {}), onKill })
  await startRun(simulation, programRun({ timeout: {} }), someTasks(2))
  await until('both run', () => simulation.node.started.length === 2)
  await simulation.coordinator.cancelRun('default', 'a')
  await overTime(simulation)
  expect(simulation.node.killed).toHaveLength(2)
  expect(simulation.warnings).toEqual([])
})

/** A command that ends only when it is ended; its grader exits with 0. */
function hanging(said = ''): SimulatedNodeOptions {
  const ends = new Map<string, (end: Partial<NodeExecEnd>) => void>()
  return {
    onExec({ argv, exec }) {
      if (argv[0] === 'grade') return {}
      return new Promise((resolve) => ends.set(exec, resolve))
    },
    onKill: (exec) => ends.get(exec)?.({ exitCode: null, signal: 9, killed: true, ...says(said) }),
  }
}
