import type { TaskPut } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { overTime, runCreate, simulate, someTasks, startRun } from './simulated/setup.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const grade = { kind: 'command', command: 'true', in: 'world' } as const

/** The phases that the one sandbox of a run was told to be in. */
async function phasesOf(
  more: Parameters<typeof runCreate>[1],
  task: Partial<TaskPut> = {},
): Promise<string[]> {
  await using simulation = await simulate()
  const tasks = someTasks(1).map((each) => ({ ...each, ...task }))
  await startRun(simulation, runCreate('a', { grade, ...more }), tasks)
  const worker = await startSimulatedWorker(simulation.coordinator, {
    run: 'a',
    work: () => ({ kind: 'returned' }),
  })
  expect(await overTime(simulation, worker)).toMatchObject([{ outcome: 'graded', reward: 1 }])
  return simulation.node.phases.map(({ phase, world = 'main' }) => `${phase} in ${world}`)
}

test('a sandbox goes through the phases of its run where one may reach anything', async () => {
  const network = { setup: 'packages' } as const
  expect(await phasesOf({ network, setup: ['pip install x'] })).toEqual([
    'agent in main',
    'grade in grade',
  ])
  expect(await phasesOf({ network })).toEqual(['grade in grade'])
})

test('a task that says what it may reach goes by that', async () => {
  const none = { network: { agent: 'none' } } as const
  const some = { network: { setup: 'packages' } } as const
  expect(await phasesOf({ ...some, setup: ['true'] }, none)).toEqual([])
  expect(await phasesOf({ ...none, setup: ['true'] }, some)).toEqual([
    'agent in main',
    'grade in grade',
  ])
})

test('where none may, nothing is said of phases', async () => {
  expect(await phasesOf({ network: { agent: 'none' }, setup: ['true'] })).toEqual([])
  expect(await phasesOf({})).toEqual([])
})
