/** Ends of a grade that are no verdict: whose fault they are, and what is told of them. */
import { type GradeSpec, type RunCreate, SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { NodeExecEnd } from '../node/port.ts'
import type { SimulatedNodeOptions } from './simulated/node.ts'
import { until } from './simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const command: GradeSpec = { kind: 'command', command: ['grade'], in: 'world' }
const LATE: Partial<NodeExecEnd> = {
  ...{ exitCode: null, signal: 9, timedOut: true, killed: true },
  ...{ stdout: Buffer.from('comparing 3 of 9'), stdoutTotalBytes: 16 },
}

/** One episode that a command is graded by. `late`: its agent never ends. */
async function graded(
  node: SimulatedNodeOptions,
  { late = false, ...more }: Partial<RunCreate> & { readonly late?: boolean } = {},
) {
  const simulation = await simulate(node)
  const timeout = { agent: 2_000, grade: 2_000 }
  const run = runCreate('a', { grade: command, retry: { grade: 0, infra: 0 }, timeout, ...more })
  await startRun(simulation, run, someTasks(1))
  const worker = run.program
    ? undefined
    : await startSimulatedWorker(simulation.coordinator, {
        run: 'a',
        work: ({ phase }) =>
          late && phase === 'agent' ? new Promise<never>(() => {}) : { kind: 'returned' },
      })
  const [row] = await overTime(simulation, worker)
  return { simulation, row }
}

test('a grader that does not end in time says what it printed last', async () => {
  const { simulation, row } = await graded({ onExec: () => LATE })
  await using _ = simulation
  expect(row).toMatchObject({ outcome: 'grade_timeout', reward: null })
  expect(row?.error).toBe('the grader did not end within 2s: comparing 3 of 9')
})

test('of a program, all that it printed is kept', async () => {
  const more: Partial<RunCreate> = { kind: 'program', program: { command: 'solve' } }
  const onExec: SimulatedNodeOptions['onExec'] = ({ argv }) => (argv[0] === 'grade' ? LATE : {})
  const { simulation, row } = await graded({ onExec }, more)
  await using _ = simulation
  expect(row).toMatchObject({ outcome: 'grade_timeout', reward: null })
  expect(row?.artifacts.map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([
    ['grade.stdout', 16],
  ])
})

test('one that gives no verdict, and whose time is over on the image alone, is late', async () => {
  const onExec: SimulatedNodeOptions['onExec'] = ({ world }) =>
    world === 'control' ? LATE : { exitCode: 127, stderr: Buffer.from('no pytest') }
  const { simulation, row } = await graded({ onExec })
  await using _ = simulation
  expect(row).toMatchObject({ outcome: 'grade_timeout', reward: null })
  expect(row?.error).toContain('exited with 127: no pytest; on the image alone')
})

const fails = (): never => {
  throw new SandlotError('internal', 'the pipe broke')
}

test.each<[string, SimulatedNodeOptions, GradeSpec]>([
  ['command could not be run', { onExec: fails }, command],
  ['world could not be opened', { onOpenGradeWorld: fails }, command],
  [
    'world could not be opened for a worker',
    { onOpenGradeWorld: fails },
    { kind: 'worker', in: 'world' },
  ],
])('a policy that used up its time has no zero where the %s', async (_, node, grade) => {
  const { simulation, row } = await graded(node, { late: true, grade })
  await using _simulation = simulation
  expect(row).toMatchObject({ outcome: 'grade_error', valid: false, reward: null })
  expect(row?.error).toContain('the pipe broke')
})

test('a policy that used up its time has 0 where its grader gives no verdict', async () => {
  const { simulation, row } = await graded({ onExec: () => LATE }, { late: true })
  await using _ = simulation
  expect(row).toMatchObject({ outcome: 'agent_timeout', valid: true, reward: 0 })
  expect(row?.cause.join()).toContain('comparing 3 of 9')
})

test('a grade whose time is over before its command could begin is the platform’s', async () => {
  await using simulation = await simulate({
    onOpenGradeWorld: () => simulation.clock.advance(2_000),
  })
  const run = runCreate('a', {
    ...{ kind: 'program', program: { command: ['solve'] }, grade: command },
    ...{ retry: { grade: 0 }, timeout: { grade: 2_000 } },
  })
  await startRun(simulation, run, someTasks(1))
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'grade_error', reward: null })
  expect(row?.error).toContain('before it could begin')
})

test('a grade that runs when the daemon is killed keeps the files that it reads', async () => {
  const ended = Promise.withResolvers<Partial<NodeExecEnd>>()
  await using simulation = await simulate({
    onExec: ({ argv }) => (argv[0] === 'grade' ? ended.promise : {}),
  })
  const { node } = simulation
  const program = { command: ['solve'] }
  const run = runCreate('a', { kind: 'program', program, grade: command })
  await startRun(simulation, run, someTasks(1))
  await until('it is graded', () => node.started.length === 2)
  const brought = [...node.files]
  await simulation.restart()
  ended.resolve({ exitCode: 0 })
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', reward: 1 }])
  expect(node.files).toEqual(brought)
  expect(node.started).toHaveLength(2)
})

test('a verdict on what was cut off from its network is none, whoever gave it', async () => {
  await using simulation = await simulate({
    onExec: ({ sandbox }) => {
      simulation.node.cutOff.add(sandbox)
      return {}
    },
  })
  const run = runCreate('a', {
    ...{ kind: 'program', program: { command: ['solve'] }, grade: command, retry: { infra: 0 } },
  })
  await startRun(simulation, run, someTasks(1))
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'infra_lost', reward: null, valid: false })
})

test('a grader has its whole time, however long it takes to bring what it needs', async () => {
  const times: (number | undefined)[] = []
  await using simulation = await simulate({
    onOpenGradeWorld: () => simulation.clock.advance(1_500),
    onExec: ({ argv, timeoutMs }) => {
      if (argv[0] === 'grade') times.push(timeoutMs)
      return {}
    },
  })
  const run = runCreate('a', {
    ...{ kind: 'program', program: { command: ['solve'] }, grade: command },
    timeout: { grade: 2_000 },
  })
  await startRun(simulation, run, someTasks(1))
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', reward: 1 }])
  expect(times).toEqual([2_000])
})
