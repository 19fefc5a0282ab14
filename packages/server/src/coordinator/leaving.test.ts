import { createHash } from 'node:crypto'
import { SandlotError, type WorkerReport } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { until } from './simulated/settle.ts'
import { runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const bytes = Buffer.from('content')
const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const file = { name: '/out/a', blob: digest, sizeBytes: bytes.length }
const threw = (): WorkerReport => ({ kind: 'threw', cause: ['as planned'] })

test('files and sandboxes of failed episodes are in their rows, and go with their run', async () => {
  await using simulation = await simulate({
    onCollect: () => ({ artifacts: [file], leftOut: ['/out/b: too large'] }),
  })
  const { coordinator, engine, kept } = simulation
  await engine.blobs.put(bytes)
  const leaves = { artifacts: ['/out/*'], keep: { of: 'failed', max: 2 } } as const
  await startRun(simulation, runCreate('a', { ...leaves, artifacts: ['/out/*'] }), someTasks(3))
  await startSimulatedWorker(coordinator, { run: 'a', work: threw })
  const rows = await simulation.results('a')
  for (const row of rows) {
    expect(row).toMatchObject({ artifacts: [file], leftOut: ['/out/b: too large'] })
  }
  const snapshots = rows.flatMap((row) => row.kept ?? [])
  expect(snapshots).toHaveLength(2)
  expect(kept.map(({ snapshot }) => snapshot).sort()).toEqual(snapshots.sort())
  expect(kept[0]).toMatchObject({ project: 'default', run: 'a', key: expect.stringMatching(/^t/) })
  // Nobody else keeps it.
  await engine.blobs.collect({ graceMs: 0 })
  expect(await engine.blobs.has(digest as `sha256:${string}`)).toBeDefined()
  await coordinator.deleteRun('default', 'a')
  expect(kept).toEqual([])
  await engine.blobs.collect({ graceMs: 0 })
  expect(await engine.blobs.has(digest as `sha256:${string}`)).toBeUndefined()
})

test('what can’t be taken is told, and costs nobody a result', async () => {
  await using simulation = await simulate({
    onCollect: () => {
      throw new Error('the agent is silent')
    },
    onKeep: () => {
      throw new SandlotError('disk_full', 'the disk is full')
    },
  })
  const leaves = { artifacts: ['/out/*'], keep: { of: 'all', max: 9 } } as const
  await startRun(simulation, runCreate('a', { ...leaves, artifacts: ['/out/*'] }), someTasks(1))
  await startSimulatedWorker(simulation.coordinator, {
    ...{ run: 'a', work: () => ({ kind: 'returned', reward: 1 }) },
  })
  expect(await simulation.results('a')).toMatchObject([
    {
      ...{ outcome: 'graded', reward: 1, artifacts: [], kept: null },
      leftOut: [
        'its files could not be collected: the agent is silent',
        'its sandbox could not be kept: the disk is full',
      ],
    },
  ])
})

test('a sandbox that dies while it is looked through is what its fate says', async () => {
  let sandbox = ''
  await using simulation = await simulate({
    onCollect: (request) => {
      sandbox = request.sandbox
      simulation.node.kill(sandbox, 'lost', true)
      throw new SandlotError('sandbox_lost', 'it is gone')
    },
  })
  await startRun(
    simulation,
    runCreate('a', { artifacts: ['/out/*'], retry: { infra: 0 } }),
    someTasks(1),
  )
  await startSimulatedWorker(simulation.coordinator, {
    ...{ run: 'a', work: () => ({ kind: 'returned', reward: 1 }) },
  })
  expect(await simulation.results('a')).toMatchObject([
    { outcome: 'infra_lost', reward: null, sandbox },
  ])
})

test('a coordinator that is killed meanwhile takes it out anew, and keeps no sandbox twice', async () => {
  let asked = 0
  const gates: (() => void)[] = []
  await using simulation = await simulate({
    onKeep: async () => {
      asked++
      if (asked === 1) await new Promise<void>((resolve) => gates.push(resolve))
    },
  })
  await startRun(simulation, runCreate('a', { keep: { of: 'failed', max: 1 } }), someTasks(1))
  await startSimulatedWorker(simulation.coordinator, { run: 'a', work: threw })
  await until('it is being kept', () => gates.length === 1)
  await simulation.restart()
  for (const open of gates) open()
  const [row] = await simulation.results('a')
  expect(row).toMatchObject({ outcome: 'episode_error', kept: simulation.kept[0]?.snapshot })
  expect(simulation.kept).toHaveLength(1)
  expect(asked).toBe(2)
})

test('a daemon that stops in good order waits for nothing of it, and loses no result by that', async () => {
  const begun = Promise.withResolvers<void>()
  await using simulation = await simulate({
    onCollect: (_, wait) => {
      begun.resolve()
      return new Promise((resolve) => {
        const stop = () => resolve({ artifacts: [], leftOut: ['/out/*: stopped'] })
        wait?.signal?.addEventListener('abort', stop, { once: true })
      })
    },
  })
  await startRun(
    simulation,
    runCreate('a', { artifacts: ['/out/*'], retry: { infra: 0 } }),
    someTasks(1),
  )
  await startSimulatedWorker(simulation.coordinator, {
    ...{ run: 'a', work: () => ({ kind: 'returned', reward: 1 }) },
  })
  await begun.promise
  await simulation.coordinator.giveUp()
  expect(simulation.node.living.size).toBe(0)
  await simulation.restart()
  expect(await simulation.results('a')).toMatchObject([
    { outcome: 'graded', reward: 1, attempt: 1, leftOut: ['/out/*: stopped'] },
  ])
})
