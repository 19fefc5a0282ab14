import { expect, test } from 'vitest'
import { runCreate, simulate, someTasks } from './simulated/setup.ts'

test('a run announces the sandboxes that it is about to ask for, and again under the next daemon', async () => {
  await using simulation = await simulate()
  const { coordinator, node } = simulation
  const memory = { checkpoint: 'sn_a' }
  await coordinator.createRun('default', { ...runCreate('a', { concurrency: 4 }), memory })
  expect(node.expected).toEqual([])
  await coordinator.putTasks('default', 'a', someTasks(3))
  await coordinator.putTasks('default', 'a', someTasks(9, 3))
  const [first, second] = node.expected
  expect(first).toMatchObject({ image: 'im_a', checkpoint: 'sn_a', count: 3 })
  expect(second).toEqual({ ...first, count: 4 })
  await simulation.restart()
  expect(node.expected.slice(2)).toEqual([second])
  expect(simulation.warnings).toEqual([])
})
