import type { GradeSpec, RunCreate, TaskPut } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import type { NodeExecEnd, NodeExecRequest } from '../../node/port.ts'
import type { SimulatedNodeOptions } from '../simulated/node.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, startRun } from '../simulated/setup.ts'

const grade = {
  ...{ kind: 'command', in: 'world', command: ['grade-last'], clear: ['/tests'] },
  reward: { from: 'stdout' },
} satisfies GradeSpec

type Steps = NonNullable<NonNullable<TaskPut['program']>['steps']>

const reward = { from: 'stdout' } as const
const first = {
  ...{ name: 'first', command: ['work-first'] },
  grade: { command: ['grade-first'], clear: ['/tests'], reward },
}
const last = { name: 'last', command: ['work-last'] }

function stepRun(more: Partial<RunCreate> = {}): RunCreate {
  return runCreate('a', {
    ...{ kind: 'program', program: { command: ['none'] }, grade },
    ...{ timeout: { agent: 2_000, grade: 2_000 }, retry: { infra: 0, grade: 0 }, ...more },
  })
}

function task(steps: Steps, rewards?: 'final' | 'mean'): TaskPut {
  return { key: 'k', json: '{}', program: { steps, ...(rewards ? { rewards } : {}) } }
}

const says = (text: string): Partial<NodeExecEnd> => ({
  stdout: Buffer.from(text),
  stdoutTotalBytes: text.length,
})

/** What each command comes to, by its name; silence is an exit with 0. */
function coming(to: Record<string, Partial<NodeExecEnd> | Promise<Partial<NodeExecEnd>>>) {
  const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) => to[argv[0] ?? ''] ?? {}
  return { onExec }
}

/** The first command goes on until it is told to end, and comes to this then. */
function endless(end: Partial<NodeExecEnd>, to: Parameters<typeof coming>[0]) {
  const ended = Promise.withResolvers<Partial<NodeExecEnd>>()
  return {
    ...coming({ 'work-first': ended.promise, ...to }),
    onKill: () => ended.resolve(end),
  }
}

const KILLED = { exitCode: null, signal: 9, killed: true }
const RIGHT = says('{"reward": 1}')

async function ran(node: SimulatedNodeOptions, tasks: readonly TaskPut[], run = stepRun()) {
  const simulation = await simulate(node)
  await startRun(simulation, run, tasks)
  const [row] = await overTime(simulation)
  if (!row) throw new Error('there is one')
  const commands = simulation.node.started.map(({ argv }) => argv[0])
  return { simulation, row, commands }
}

describe('steps of a program', () => {
  test('are run and graded one after another, and what they gave becomes one reward', async () => {
    const node = coming({
      'grade-first': says('{"reward": 1, "style": 1}'),
      'grade-last': says('{"reward": 0}'),
    })
    const { simulation, row, commands } = await ran(node, [task([first, last], 'mean')])
    await using _ = simulation
    expect(commands).toEqual(['work-first', 'grade-first', 'work-last', 'grade-last'])
    expect(row).toMatchObject({
      ...{ outcome: 'graded', reward: 0.5, rewards: { reward: 0.5, style: 0.5 }, attempt: 1 },
      data: {
        exitCode: 0,
        steps: [
          { name: 'first', reward: 1, rewards: { reward: 1, style: 1 } },
          { name: 'last', reward: 0 },
        ],
      },
    })
    expect(row.artifacts.map(({ name }) => name)).toEqual(['first.grade.stdout', 'grade.stdout'])
    // Of the tests of a step nothing is there when the next one begins.
    const main = simulation.node.files.filter(({ world = 'main' }) => world === 'main')
    expect(main.map(({ clear }) => clear)).toEqual([undefined, ['/tests'], ['/tests']])
  })

  test('end where one falls short of what the next ones ask for', async () => {
    const node = coming({ 'grade-first': says('{"reward": 0.4}') })
    const short = { ...first, least: { reward: 0.5 } }
    const { simulation, row, commands } = await ran(node, [task([short, last])])
    await using _ = simulation
    expect(commands).toEqual(['work-first', 'grade-first'])
    expect(row).toMatchObject({ outcome: 'graded', reward: 0.4, rewards: null })
  })

  test.each([
    [{}, 'printed no verdict'],
    [{ exitCode: 127 }, 'exited with 127'],
    [{ timedOut: true }, 'did not end within 2s'],
  ])('a grader that comes to %j gives nobody a zero', async (end, cause) => {
    const { simulation, row, commands } = await ran(coming({ 'grade-first': end }), [
      task([first, last]),
    ])
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
    expect(row.error).toMatch('step first: its grader')
    expect(row.error).toMatch(cause)
    expect(commands).toEqual(['work-first', 'grade-first'])
  })

  test('one that can’t be run, or not be prepared, is nobody’s zero either', async () => {
    for (const command of ['work-first', 'prepare']) {
      const node = coming({ [command]: { exitCode: 126 } })
      const steps = [{ ...first, prepare: ['prepare'] }, last]
      const { simulation, row } = await ran(node, [task(steps)])
      await using _ = simulation
      expect(row).toMatchObject({ outcome: 'episode_error', reward: null })
      expect(row.error).toMatch(/^step first: .*126/)
    }
  })

  test('one that uses up its time is graded as it stands, and the next ones go on', async () => {
    const node = endless(KILLED, { 'grade-first': RIGHT, 'grade-last': RIGHT })
    const { simulation, row } = await ran(node, [task([{ ...first, timeout: 500 }, last], 'mean')])
    await using _ = simulation
    expect(row).toMatchObject({
      outcome: 'limit',
      valid: true,
      reward: 1,
      data: { late: ['first'] },
    })
    expect(row.phases.agentMs).toBeGreaterThanOrEqual(500)
  })

  test('one that says no time has that of its task', async () => {
    const node = endless(KILLED, { 'grade-first': { timedOut: true } })
    const own = { ...task([first, last]), timeout: { agent: 700, grade: 300 } }
    const { simulation, row } = await ran(node, [own])
    await using _ = simulation
    expect(row.phases.agentMs).toBeGreaterThanOrEqual(700)
    expect(row.phases.agentMs).toBeLessThan(2_000)
    expect(row.cause.join()).toMatch('did not end within 300ms')
  })

  test('a grader in an image of its own gets what it is passed, beside what still runs', async () => {
    const elsewhere = { ...first.grade, from: 'im_b', pass: ['/out'] }
    const own = { from: 'im_c', pass: ['/all'], clear: ['/logs'] }
    const given = says('{"reward": 1}')
    const simulation = await simulate(coming({ 'grade-first': given, 'grade-last': given }))
    await using _ = simulation
    const stepped = { ...task([{ ...first, grade: elsewhere }, last]), grade: own }
    await startRun(simulation, stepRun({ network: { agent: 'packages' } }), [stepped])
    const [row] = await overTime(simulation)
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    const { node } = simulation
    expect(node.opened).toMatchObject([
      { world: 'stepa', shows: { image: 'im_b' }, beside: true },
      { world: 'grade', shows: { image: 'im_c' } },
    ])
    expect(node.passed).toMatchObject([
      { world: 'stepa', paths: ['/out'] },
      { world: 'grade', paths: ['/all'] },
    ])
    const where = node.started.map(({ world = 'main', image }: NodeExecRequest) => [world, image])
    expect(where).toEqual([
      ...[
        ['main', undefined],
        ['stepa', 'im_b'],
        ['main', undefined],
        ['grade', 'im_c'],
      ],
    ])
    expect(node.stepWorlds.size).toBe(0)
    expect(node.phases.map(({ phase, world = 'main' }) => [phase, world])).toEqual([
      ...[
        ['agent', 'main'],
        ['grade', 'stepa'],
        ['agent', 'main'],
      ],
      ...[
        ['agent', 'main'],
        ['grade', 'grade'],
      ],
    ])
  })

  test('go on over restarts of the daemon where they were, and begin nothing twice', async () => {
    const steps: Steps = ['a', 'b', 'c'].map((name) => ({
      ...{ name, command: [`work-${name}`] },
      grade: { command: [`grade-${name}`], reward },
    }))
    const waits = new Map<string, (end: Partial<NodeExecEnd>) => void>()
    await using simulation = await simulate({
      onExec: ({ argv: [name = ''] }) => new Promise((resolve) => void waits.set(name, resolve)),
    })
    await startRun(simulation, stepRun(), [task([...steps, last], 'mean')])
    const names = ['a', 'b', 'c', 'last'].flatMap((name) => [`work-${name}`, `grade-${name}`])
    for (const name of names) {
      await until(`${name} runs`, () => waits.has(name))
      await simulation.restart()
      waits.get(name)?.(name.startsWith('grade') ? says('{"reward": 1}') : {})
    }
    expect(await overTime(simulation)).toMatchObject([
      { outcome: 'graded', reward: 1, attempt: 1, data: { steps: [{}, {}, {}, {}] } },
    ])
    expect(simulation.node.started.map(({ argv }) => argv[0])).toEqual(names)
  })

  test.each([
    ['its command is ended', 'onKill'],
    ['it is graded', 'grade-first'],
  ])(
    'one that uses up its time has done so, though the daemon is killed when %s',
    async (_, at) => {
      const killed = Promise.withResolvers<Partial<NodeExecEnd>>()
      const graded = Promise.withResolvers<Partial<NodeExecEnd>>()
      const reached = new Set<string>()
      await using simulation = await simulate({
        onExec: ({ argv: [name = ''] }) => {
          reached.add(name)
          if (name === 'work-first') return killed.promise
          return name === 'grade-first' ? graded.promise : RIGHT
        },
        onKill() {
          reached.add('onKill')
          // The first daemon that asks is killed before anything comes of it.
          if (at !== 'onKill' || restarted) killed.resolve(KILLED)
        },
      })
      let restarted = false
      await startRun(simulation, stepRun(), [task([{ ...first, timeout: 500 }, last], 'mean')])
      await until(`it comes to ${at}`, () => {
        if (simulation.isIdle) simulation.clock.advance(100)
        return reached.has(at)
      })
      restarted = true
      await simulation.restart()
      graded.resolve(RIGHT)
      expect(await overTime(simulation)).toMatchObject([
        { outcome: 'limit', reward: 1, attempt: 1, data: { late: ['first'] } },
      ])
    },
  )

  test('one that is called as one before it that used up its time has its own', async () => {
    const one = Promise.withResolvers<Partial<NodeExecEnd>>()
    const two = Promise.withResolvers<Partial<NodeExecEnd>>()
    const begun = new Set<string>()
    let kills = 0
    await using simulation = await simulate({
      onExec: ({ argv: [name = ''] }) => {
        begun.add(name)
        return name === 'work-first' ? one.promise : name === 'work-last' ? two.promise : RIGHT
      },
      onKill() {
        kills += 1
        one.resolve(KILLED)
      },
    })
    const second = { ...last, name: first.name }
    await startRun(simulation, stepRun(), [task([{ ...first, timeout: 500 }, second], 'mean')])
    await until('the second begins', () => {
      if (kills === 0 && simulation.isIdle) simulation.clock.advance(100)
      return begun.has('work-last')
    })
    two.resolve({})
    expect(await overTime(simulation)).toMatchObject([
      { outcome: 'limit', reward: 1, data: { late: ['first'] } },
    ])
    expect(kills).toBe(1)
  })

  test('one whose command ended by itself before it could be ended has not used up its time', async () => {
    const node = endless({ exitCode: 0 }, { 'grade-first': RIGHT, 'grade-last': RIGHT })
    const { simulation, row } = await ran(node, [task([{ ...first, timeout: 500 }, last], 'mean')])
    await using _ = simulation
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(row.data).not.toHaveProperty('late')
  })

  test('an image that is not there, and steps that nobody grades, are refused', async () => {
    await using simulation = await simulate()
    await simulation.coordinator.createRun('default', stepRun())
    const put = (given: TaskPut) => simulation.coordinator.putTasks('default', 'a', [given])
    const none = { ...first, grade: { ...first.grade, from: 'im_none' } }
    await expect(put(task([none, last]))).rejects.toMatchObject({ code: 'image_unknown' })
    const { grade: _, ...ungraded } = stepRun()
    await simulation.coordinator.createRun('default', { ...ungraded, name: 'b' })
    await expect(
      simulation.coordinator.putTasks('default', 'b', [task([first, last])]),
    ).rejects.toThrow('has steps, and the run has no grade command')
  })
})
