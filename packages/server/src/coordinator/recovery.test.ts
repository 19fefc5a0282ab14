import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, openSqliteEngine } from '@sandlot/engine'
import { groupSpec, type RunCreate, type TaskPut } from '@sandlot/protocol'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Coordinator } from './coordinator.ts'
import { createManualClock, type ManualClock } from './simulated/clock.ts'
import { type CrashMode, type CrashSwitch, createCrashSwitch } from './simulated/crash.ts'
import { SimulatedNode } from './simulated/node.ts'
import { until } from './simulated/settle.ts'
import { type SimulatedWorker, startSimulatedWorker } from './simulated/worker.ts'

let directory: string
let engine: Engine
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'recovery-'))
  engine = await openSqliteEngine({ directory })
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

interface World {
  readonly clock: ManualClock
  readonly node: SimulatedNode
  readonly warnings: string[]
}

function openWorld(): World {
  /** By sandbox and path: written by `judge`, and gone when it is put to be removed. */
  const files = new Map<string, string>()
  const node = new SimulatedNode({
    remembered: 2,
    async onExec({ sandbox, argv }) {
      if (argv.includes('judge')) files.set(`${sandbox}/verdict`, '1')
      return argv.includes('fail') ? { exitCode: 1 } : {}
    },
    onPut({ sandbox, remove = [] }) {
      for (const path of remove) files.delete(sandbox + path)
    },
    onRead: ({ sandbox, path }) => files.get(sandbox + path),
  })
  return { clock: createManualClock(), node, warnings: [] }
}

function start({ clock, node, warnings }: World, crash: CrashSwitch): Coordinator {
  return new Coordinator({
    engine: crash.wrap(engine),
    node: crash.wrap(node),
    clock: crash.wrapClock(clock),
    keeper: { keep: async () => {}, forget: async () => {} },
    imageDigest: async () => 'sha256:image',
    warn: (message, error) => warnings.push(`${message}: ${String(error)}`),
  })
}

interface Scenario {
  readonly run: RunCreate
  readonly tasks: readonly TaskPut[]
  /** The worker's process dies with the coordinator, instead of coming back with what it holds. */
  readonly workerDies?: boolean
}

/** Lives through the crashes one after another, then to the end of the run. */
async function liveThrough(world: World, scenario: Scenario, crashes: [number, CrashMode][]) {
  let worker: SimulatedWorker | undefined
  for (let life = 0; ; life++) {
    const [at, mode] = crashes[life] ?? [Number.POSITIVE_INFINITY, 'before']
    const crash = createCrashSwitch(at, mode)
    const coordinator = start(world, crash)
    const lived = live({ world, coordinator, crash }, scenario, worker, (started) => {
      worker = started
    })
    // It may also be killed while it stops.
    const stopped = lived.then(() => coordinator[Symbol.asyncDispose]())
    if ((await Promise.race([stopped, crash.dead])) !== 'dead') return { lives: life + 1 }
    if (scenario.workerDies) worker = undefined
  }
}

interface Life {
  readonly world: World
  readonly coordinator: Coordinator
  readonly crash: CrashSwitch
}

async function live(
  { world, coordinator, crash }: Life,
  { run, tasks, workerDies }: Scenario,
  before: SimulatedWorker | undefined,
  started: (worker: SimulatedWorker) => void,
): Promise<void> {
  await coordinator.recover()
  await coordinator.createRun('default', { ...run, ifExists: 'attach' })
  let worker = before
  if (worker) await worker.reconnect(coordinator)
  else if (run.kind === 'worker') {
    worker = await startSimulatedWorker(coordinator, {
      run: run.name,
      number: workerDies ? freshWorker() : 1,
      work: ({ taskJson, phase }) => {
        const reward = phase === 'grade' || run.grade === undefined ? { reward: 0.5 } : {}
        return { kind: 'returned', ...reward, dataJson: taskJson ?? 'null' }
      },
    })
    started(worker)
  }
  const isOver = () =>
    crash.ask(async () => (await coordinator.getRun('default', run.name)).state === 'finished')
  if (!(await isOver())) {
    await coordinator.putTasks('default', run.name, tasks).catch(unlessClosed)
    await coordinator.closeRun('default', run.name)
  }
  await until('the run is over', async () => {
    const { inputsWaiting, batchesInFlight } = coordinator.numbers()
    // A worker that died is missed only when time passes.
    if (workerDies && inputsWaiting === 0 && batchesInFlight === 0) {
      world.clock.advance(1_000)
      worker?.renew()
    }
    return await isOver()
  })
  await until('nothing lives', () => crash.ask(async () => world.node.living.size === 0))
}

let workers = 1
function freshWorker(): number {
  workers += 1
  return workers % 200
}

function unlessClosed(error: { code?: string }) {
  if (error.code !== 'run_closed') throw error
}

async function expectExactlyOnce(world: World, { run, tasks }: Scenario) {
  const coordinator = start(world, createCrashSwitch(Number.POSITIVE_INFINITY, 'before'))
  await coordinator.recover()
  // What was decided last and not written yet when its coordinator stopped is decided again.
  const view = async () => await coordinator.getRun('default', run.name)
  await until('it is over', async () => (await view()).state === 'finished')
  const page = await coordinator.getResults('default', run.name, { limit: 1_000 })
  expect(page.done).toBe(true)
  expect(page.rows.map((row) => row.key).sort()).toEqual(tasks.map((task) => task.key).sort())
  expect(new Set(page.rows.map((row) => row.cursor)).size).toBe(tasks.length)
  if (run.group) {
    const { groups, done } = await coordinator.getGroups('default', run.name, {})
    expect(done).toBe(true)
    expect(groups).toMatchObject([{ group: 'g', state: 'complete', rows: page.rows }])
  }
  expect((await view()).counts).toEqual({
    tasks: tasks.length,
    queued: 0,
    running: 0,
    grading: 0,
    done: 3,
  })
  expect(world.node.living.size).toBe(0)
  const execs = world.node.started.map(({ exec }) => exec)
  expect(new Set(execs).size).toBe(execs.length)
  expect(world.warnings).toEqual([])
  await coordinator[Symbol.asyncDispose]()
  return page.rows
}

const tasks: TaskPut[] = [
  { key: 'small', json: '{"n":1}' },
  { key: 'large', json: JSON.stringify({ text: 'x'.repeat(1_000) }) },
  { key: 'third', json: '{"n":3}' },
]

const base = { kind: 'worker', from: 'im_a', concurrency: 2 } as const
const variants: Record<string, Omit<RunCreate, 'name'>> = {
  plain: base,
  'set-up and grade by command': {
    ...base,
    setup: ['true', ['prepare', 'all']],
    grade: { kind: 'command', command: ['fail'], in: 'world' },
  },
  'a set-up of more commands than are remembered': {
    ...base,
    setup: ['one', 'two', 'three', 'four'],
  },
  'a group': { ...base, group: groupSpec.parse({ by: 'name', size: 3 }) },
  'a program': {
    ...{ from: 'im_a', concurrency: 2, kind: 'program' },
    program: { command: ['fail'], files: [] },
    grade: {
      ...{ kind: 'command', command: ['judge'], in: 'world' },
      reward: { from: 'file', paths: ['/verdict'] },
    },
  },
  'grade by a worker': { ...base, grade: { kind: 'worker', in: 'world' } },
}

let runs = 0
function scenario(variant: string, more: Partial<Scenario> = {}): Scenario {
  runs += 1
  const run = { ...(variants[variant] as RunCreate), name: `r${runs}` }
  if (run.group === undefined) return { run, tasks, ...more }
  return { run, tasks: tasks.map((task) => ({ ...task, group: 'g' })), ...more }
}

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])(
  'survives SIGKILL of coordinator and worker, again and again (seed %i)',
  async (seed) => {
    const random = randomOf(seed)
    const world = openWorld()
    const names = Object.keys(variants)
    const killed = scenario(names[random(names.length)] as string, { workerDies: seed % 2 === 0 })
    const crashes = Array.from({ length: 2 + random(3) }, (): [number, CrashMode] => [
      1 + random(30),
      random(2) === 0 ? 'before' : 'after',
    ])
    const { lives } = await liveThrough(world, killed, crashes)
    expect(lives).toBeGreaterThan(1)
    const rows = await expectExactlyOnce(world, killed)
    expect(rows.map(({ outcome }) => outcome)).toEqual(tasks.map(() => 'graded'))
  },
)

/** Numbers below `bound`, the same for the same seed. */
function randomOf(seed: number): (bound: number) => number {
  let state = seed * 0x9e3779b1
  return (bound) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5
    return ((state ^ (state >>> 13)) >>> 0) % bound
  }
}

describe.each(Object.keys(variants))('%s', (variant) => {
  test.each(['before', 'after'] as const)('survives SIGKILL %s every call', async (mode) => {
    for (let at = 1; ; at++) {
      const here = openWorld()
      const killed = scenario(variant)
      const { lives } = await liveThrough(here, killed, [[at, mode]])
      const rows = await expectExactlyOnce(here, killed)
      // The worker lives on and keeps what it holds: no attempt is lost.
      expect(rows.map((row) => [row.outcome, row.attempt])).toEqual(tasks.map(() => ['graded', 1]))
      if (killed.run.kind === 'program') {
        expect(rows.map(({ reward }) => reward)).toEqual(tasks.map(() => 1))
      }
      // It was over before it made so many calls.
      if (lives === 1) {
        expect(at).toBeGreaterThan(20)
        return
      }
    }
  })
})
