import { type GradeSpec, RESOURCES_DEFAULT, type TaskPut } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { AcquireRequest, NodeExecRequest } from '../node/port.ts'
import type { TaskRequest } from './port.ts'
import { overTime, runCreate, type Simulation, simulate, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const grade = {
  kind: 'command',
  in: 'world',
  command: ['grade'],
  env: { A: 'of the run', B: 'of the run' },
} satisfies GradeSpec

const image = (id: string) => ({ id, image: id })

function task(key: string, more: Partial<TaskRequest> = {}): TaskRequest {
  return { key, json: '{}', ...more }
}

/** Runs to its end with a worker that returns at once; what the node was asked, by key. */
async function asked(tasks: readonly TaskRequest[], restart = false) {
  const acquired = new Map<string, AcquireRequest>()
  const graded: NodeExecRequest[] = []
  await using simulation = await simulate({
    onAcquire: (request) => void acquired.set(request.owner.split('/')[1] ?? '', request),
    onExec(request) {
      if (request.world === 'grade') graded.push(request)
      return {}
    },
  })
  await startRun(simulation, runCreate('a', { grade }), tasks as TaskPut[])
  if (restart) await simulation.restart()
  const rows = await worked(simulation)
  return { rows, acquired, graded }
}

async function worked(simulation: Simulation) {
  const worker = await startSimulatedWorker(simulation.coordinator, {
    run: 'a',
    work: () => ({ kind: 'returned' }),
  })
  return await overTime(simulation, worker)
}

test.each([false, true])(
  'a task starts from what it names, with what it asks for; its row says so (restart: %s)',
  async (restart) => {
    const { rows, acquired, graded } = await asked(
      [
        task('own', {
          start: image('im_b'),
          resources: { memory: { request: 2 ** 28, limit: 2 ** 28 } },
          network: { agent: 'packages' },
          grade: { command: ['other'], env: { B: 'its own' }, cwd: '/there' },
        }),
        task('plain'),
      ],
      restart,
    )
    expect(rows.map(({ from }) => from)).toEqual(['sha256:im_b', 'sha256:im_a'])
    expect(acquired.get('own')).toMatchObject({
      image: 'im_b',
      network: { agent: 'packages' },
      resources: { memory: { limit: 2 ** 28 }, disk: 2 ** 27, cpu: RESOURCES_DEFAULT.cpu },
    })
    expect(acquired.get('plain')).toMatchObject({
      image: 'im_a',
      network: {},
      resources: RESOURCES_DEFAULT,
    })
    const own = graded.find(({ argv }) => argv[0] === 'other')
    expect(own).toMatchObject({ env: { A: 'of the run', B: 'its own' }, cwd: '/there' })
    expect(graded.find(({ argv }) => argv[0] === 'grade')).toMatchObject({ env: grade.env })
  },
)

test('what a task has of its own may be long', async () => {
  const env = { LONG: 'x'.repeat(10_000) }
  const { graded } = await asked([task('long', { grade: { env } })], true)
  expect(graded[0]?.env).toMatchObject(env)
})

test('a task has deadlines of its own', async () => {
  await using simulation = await simulate()
  const tasks = [task('quick', { timeout: { agent: 500 } }), task('slow')]
  await startRun(simulation, runCreate('a', { timeout: { agent: 5_000 } }), tasks as TaskPut[])
  const worker = await startSimulatedWorker(simulation.coordinator, { run: 'a' })
  const rows = await overTime(simulation, worker)
  expect(rows.map(({ phases }) => phases.agentMs)).toEqual([500, 5_000])
  expect(rows[0]?.error).toBe('the agent used up its time within 500ms')
})

test('the same key with other terms is another task, with the same ones it is known', async () => {
  await using simulation = await simulate()
  const { coordinator } = simulation
  await coordinator.createRun('default', runCreate('a'))
  const own = task('k', { start: image('im_b'), timeout: { agent: 1_000 } })
  const put = (tasks: TaskRequest[]) => coordinator.putTasks('default', 'a', tasks)
  expect(await put([own])).toEqual({ added: 1, known: 0 })
  await simulation.restart()
  const again = (tasks: TaskRequest[]) => simulation.coordinator.putTasks('default', 'a', tasks)
  expect(await again([own])).toEqual({ added: 0, known: 1 })
  for (const other of [task('k'), { ...own, start: image('im_c') }, { ...own, timeout: {} }]) {
    await expect(again([other])).rejects.toMatchObject({ code: 'task_conflict' })
  }
})

test('what a task starts from is in use until the run is over', async () => {
  await using simulation = await simulate()
  await startRun(simulation, runCreate('a'), [task('k', { start: image('im_b') })] as TaskPut[])
  expect(simulation.coordinator.unfinishedFrom('im_b')).toBe('a')
  await simulation.restart()
  expect(simulation.coordinator.unfinishedFrom('im_b')).toBe('a')
  await worked(simulation)
  expect(simulation.coordinator.unfinishedFrom('im_b')).toBeUndefined()
})

test.each([
  ['an image that is not there', { start: image('im_none') }, 'image_unknown'],
  ['a program in a run of workers', { program: { command: 'x' } }, 'invalid_request'],
  ['a grade command where the run has none', { grade: { command: 'x' } }, 'invalid_request'],
  [
    'contents that nobody sent',
    { grade: { files: [file(`sha256:${'0'.repeat(64)}`)] } },
    'blob_unknown',
  ],
  ['too much of its own', { grade: { env: { A: 'x'.repeat(200_000) } } }, 'too_large'],
] as const)('a task with %s is refused, and the others with it', async (_, own, code) => {
  await using simulation = await simulate()
  const graded = code === 'too_large' || code === 'blob_unknown' ? { grade } : {}
  await simulation.coordinator.createRun('default', runCreate('a', graded))
  const tasks = [task('good'), task('bad', own as Partial<TaskRequest>)]
  const put = simulation.coordinator.putTasks('default', 'a', tasks)
  await expect(put).rejects.toMatchObject({ code })
  expect((await simulation.view('a')).counts.tasks).toBe(0)
})

function file(blob: string) {
  return { path: '/f', blob, mode: 0o644 }
}
