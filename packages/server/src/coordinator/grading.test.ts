import { type ErrorCode, type GradeSpec, SandlotError } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import type { NodeExecEnd } from '../node/port.ts'
import type { SimulatedNodeOptions } from './simulated/node.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const command = { kind: 'command', command: ['grade', 'it'], in: 'world' } satisfies GradeSpec

/** One episode that is graded by command; time passes until it is over. */
async function graded(node: SimulatedNodeOptions, grade: GradeSpec = command, retry = 0) {
  const simulation = await simulate(node)
  await startRun(
    simulation,
    runCreate('a', { grade, retry: { grade: retry }, timeout: { grade: 2_000 } }),
    someTasks(1),
  )
  const worker = await startSimulatedWorker(simulation.coordinator, {
    run: 'a',
    work: () => ({ kind: 'returned', dataJson: '{"kept":true}' }),
  })
  const [row] = await overTime(simulation, worker)
  return { simulation, row }
}

describe('a grade command', () => {
  test.each([
    [{ exitCode: 0 }, 'graded', 1],
    [{ exitCode: 1 }, 'graded', 0],
    [{ exitCode: 125 }, 'graded', 0],
    [{ exitCode: null, signal: 9, timedOut: true, killed: true }, 'grade_timeout', null],
  ] as const)('that ends with %j is %s', async (end, outcome, reward) => {
    const { simulation, row } = await graded({ onExec: () => end })
    await using _ = simulation
    expect(row).toMatchObject({ outcome, reward, data: { kept: true } })
  })

  const broken: [string, () => Partial<NodeExecEnd>][] = [
    ['not found', () => ({ exitCode: 127 })],
    ['not executable', () => ({ exitCode: 126 })],
    ['a signal', () => ({ exitCode: null, signal: 11 })],
    ['no start', () => refuse('exec_failed')],
  ]
  function refuse(code: ErrorCode): never {
    throw new SandlotError(code, `refused as ${code}`)
  }

  describe.each(broken)('that ends with %s', (_, end) => {
    test('is a 0 where it works on the image alone: the episode broke it', async () => {
      for (const place of ['world', 'same'] as const) {
        const onExec: SimulatedNodeOptions['onExec'] = ({ world }) =>
          world === 'control' ? { exitCode: 1 } : end()
        const { simulation, row } = await graded({ onExec }, { ...command, in: place })
        await using _ = simulation
        expect(row).toMatchObject({ outcome: 'graded', valid: true, reward: 0 })
        expect(row?.error).toMatch(/^the grade command .*; on the image alone it works/)
        expect(simulation.node.controlWorlds.size).toBe(1)
      }
    })

    test('is grade_error where it does not, or where it had the image alone', async () => {
      for (const place of ['world', 'clean'] as const) {
        const { simulation, row } = await graded({ onExec: end }, { ...command, in: place })
        await using _ = simulation
        expect(row).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
        expect(simulation.node.controlWorlds.size).toBe(place === 'clean' ? 0 : 1)
      }
    })

    test('is grade_error where the platform fails meanwhile', async () => {
      const { simulation, row } = await graded({
        onExec: end,
        onOpenGradeWorld: (_, world) => (world === 'control' ? refuse('timeout') : undefined),
      })
      await using _ = simulation
      expect(row).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
    })
  })

  test.each(['timeout', 'internal', 'create_failed'] as const)(
    'that the platform failed (%s) is never a 0, whatever the image has',
    async (code) => {
      const onExec: SimulatedNodeOptions['onExec'] = ({ world }) =>
        world === 'control' ? { exitCode: 1 } : refuse(code)
      const { simulation, row } = await graded({ onExec })
      await using _ = simulation
      expect(row).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
    },
  )

  test('that takes the sandbox’s memory is sandbox_oom, 0, where it runs the episode’s files', async () => {
    for (const [place, outcome, reward] of [
      ['world', 'sandbox_oom', 0],
      ['clean', 'grade_error', null],
    ] as const) {
      const started = Promise.withResolvers<string>()
      await using simulation = await simulate({
        onExec({ sandbox }) {
          started.resolve(sandbox)
          return new Promise(() => {})
        },
      })
      const grade = { ...command, in: place }
      const run = runCreate('a', { grade, retry: { grade: 0, infra: 0 } })
      await startRun(simulation, run, someTasks(1))
      const worker = await startSimulatedWorker(simulation.coordinator, {
        run: 'a',
        work: () => ({ kind: 'returned' }),
      })
      simulation.node.kill(await started.promise, 'oom_limit')
      const [row] = await overTime(simulation, worker)
      expect(row).toMatchObject({ outcome, reward })
    }
  })

  test('that never ends is grade_timeout, and is stopped', async () => {
    const { simulation, row } = await graded({ onExec: () => new Promise(() => {}) })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'grade_timeout', reward: null })
    expect(simulation.node.killed).toEqual(simulation.node.started.map(({ exec }) => exec))
  })

  test('runs in a world of its own, with its files brought there', async () => {
    await using simulation = await simulate()
    const { engine, node, coordinator } = simulation
    const { digest } = await engine.blobs.put(Buffer.from('assert True'))
    const files = [{ path: '/tests/a.py', blob: digest, mode: 0o644 }]
    const grade = { ...command, files, env: { A: 'b' }, cwd: '/tests', user: 'root' }
    await startRun(simulation, runCreate('a', { grade }), someTasks(1))
    await startSimulatedWorker(coordinator, { run: 'a', work: () => ({ kind: 'returned' }) })
    const [row] = await simulation.results('a')
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    const [sandbox] = node.acquired
    expect([...node.gradeWorlds]).toEqual([sandbox])
    expect(node.files).toEqual([{ sandbox, world: 'grade', files }])
    expect(node.started).toMatchObject([
      {
        sandbox,
        world: 'grade',
        argv: ['grade', 'it'],
        env: { A: 'b' },
        cwd: '/tests',
        user: 'root',
      },
    ])
    expect((await engine.blobs.pins('run/')).pins.map((pin) => pin.digest)).toEqual([digest])
  })

  test('in the same world needs no other', async () => {
    const { simulation, row } = await graded({}, { ...command, command: 'exit 0', in: 'same' })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(simulation.node.gradeWorlds.size).toBe(0)
    expect(simulation.node.started).toMatchObject([
      { world: 'main', argv: ['/bin/sh', '-c', 'exit 0'] },
    ])
  })

  test('whose files are not there is refused with the run', async () => {
    await using simulation = await simulate()
    const blob = `sha256:${'0'.repeat(64)}`
    const grade = { ...command, files: [{ path: '/a', blob, mode: 0o644 }] }
    await expect(
      simulation.coordinator.createRun('default', runCreate('a', { grade })),
    ).rejects.toMatchObject({ code: 'blob_unknown' })
    await expect(simulation.view('a')).rejects.toMatchObject({ code: 'run_unknown' })
  })

  test('is tried again alone, in the same sandbox', async () => {
    let tries = 0
    const onExec = () => {
      tries += 1
      return { exitCode: tries <= 2 ? 127 : 0 }
    }
    const { simulation, row } = await graded({ onExec }, command, 1)
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'graded', reward: 1, attempt: 1 })
    expect(simulation.node.acquired).toHaveLength(1)
    const { started } = simulation.node
    expect(new Set(started.map(({ exec }) => exec)).size).toBe(3)
    expect(started.map(({ world }) => world)).toEqual(['grade', 'control', 'grade'])
  })

  test('whose world can’t be opened is grade_error', async () => {
    const onOpenGradeWorld = () => {
      throw new SandlotError('timeout', 'main would not end')
    }
    const { simulation, row } = await graded({ onOpenGradeWorld })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'grade_error', reward: null })
    expect(row?.cause.join()).toContain('main would not end')
  })

  test('whose sandbox dies under it is grade_error', async () => {
    let started = () => {}
    await using simulation = await simulate({
      onExec: () => new Promise(() => started()),
    })
    const running = new Promise<void>((resolve) => (started = resolve))
    const run = runCreate('a', { grade: command, retry: { grade: 0, infra: 0 } })
    await startRun(simulation, run, someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => ({ kind: 'returned' }),
    })
    await running
    simulation.node.kill(simulation.node.acquired[0] ?? '', 'lost')
    expect((await overTime(simulation, worker))[0]).toMatchObject({
      ...{ outcome: 'grade_error', reward: null },
    })
  })
})

describe('a grade by a worker', () => {
  const grade: GradeSpec = { kind: 'worker', in: 'world' }

  test('gets the episode’s data, in a world that is open', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { grade }), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: ({ phase, sandbox, world, dataJson, taskJson }) => {
        if (phase === 'agent') return { kind: 'returned', dataJson: '{"answer":4}' }
        expect([world, dataJson, taskJson]).toEqual(['grade', '{"answer":4}', '{"n":0}'])
        expect(simulation.node.gradeWorlds.has(sandbox)).toBe(true)
        return { kind: 'returned', reward: 0.25, rewards: { style: 1 } }
      },
    })
    expect((await overTime(simulation, worker))[0]).toMatchObject({
      ...{ outcome: 'graded', reward: 0.25, rewards: { style: 1 }, data: { answer: 4 } },
    })
    const phases = worker.events.flatMap((event) =>
      event.kind === 'lease' ? [event.lease.phase] : [],
    )
    expect(phases).toEqual(['agent', 'grade'])
  })

  test('whose world can’t be opened is grade_error', async () => {
    const onOpenGradeWorld = () => {
      throw new SandlotError('timeout', 'main would not end')
    }
    const { simulation, row } = await graded({ onOpenGradeWorld }, grade)
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'grade_error', reward: null })
    expect(row?.cause.join()).toContain('main would not end')
  })

  test('a reward of the episode itself is refused', async () => {
    await using simulation = await simulate()
    await startRun(simulation, runCreate('a', { grade }), someTasks(1))
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => ({ kind: 'returned', reward: 1 }),
    })
    expect((await overTime(simulation, worker))[0]).toMatchObject({ outcome: 'episode_error' })
  })
})

describe('a set-up', () => {
  const setup = ['first', ['second', 'command']]

  async function prepared(node: SimulatedNodeOptions) {
    const simulation = await simulate(node)
    await startRun(
      simulation,
      runCreate('a', { setup, retry: { infra: 0 }, timeout: { setup: 2_000 } }),
      someTasks(1),
    )
    const worker = await startSimulatedWorker(simulation.coordinator, {
      run: 'a',
      work: () => ({ kind: 'returned', reward: 1 }),
    })
    const [row] = await overTime(simulation, worker)
    return { simulation, row }
  }

  test('runs its commands in order, before the worker', async () => {
    const { simulation, row } = await prepared({})
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'graded' })
    expect(simulation.node.started.map(({ argv }) => argv)).toEqual([
      ['/bin/sh', '-c', 'first'],
      ['second', 'command'],
    ])
  })

  test('that fails is setup_error with what it said', async () => {
    const { simulation, row } = await prepared({
      onExec: ({ argv }) =>
        argv.includes('second') ? { exitCode: 2, stderr: Buffer.from('no network\n') } : {},
    })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'setup_error', reward: null })
    expect(row?.cause.join()).toContain('set-up command 2 exited with 2: no network')
  })

  test('that can’t be started is setup_error; a failure of ours is not', async () => {
    for (const [code, outcome] of [
      ['exec_failed', 'setup_error'],
      ['internal', 'infra_create'],
    ] as const) {
      const { simulation, row } = await prepared({
        onExec() {
          throw new SandlotError(code, 'no such command')
        },
      })
      await using _ = simulation
      expect(row).toMatchObject({ outcome, reward: null })
    }
  })

  test('that does not end in time is setup_error with where it was, and what it said', async () => {
    const late: Partial<NodeExecEnd> = { exitCode: null, signal: 9, timedOut: true, killed: true }
    const { simulation, row } = await prepared({
      onExec: ({ argv }) =>
        argv.includes('second') ? { ...late, stderr: Buffer.from('fetching 3 of 9\n') } : {},
    })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'setup_error', valid: false, reward: null })
    expect(row?.error).toBe('the set-up did not end within 2s: its command 2: fetching 3 of 9')
  })

  test('that never ends is setup_error', async () => {
    const { simulation, row } = await prepared({ onExec: () => new Promise(() => {}) })
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'setup_error' })
  })
})
