/** Programs whose model is called through the daemon. */
import { expect, test } from 'vitest'
import type { NodeExecEnd } from '../../node/port.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from '../simulated/setup.ts'

/** One episode whose command calls its model, and ends when it is told to. */
async function calling(restarts = false) {
  const ended = Promise.withResolvers<Partial<NodeExecEnd>>()
  const simulation = await simulate({ onExec: () => ended.promise })
  await startRun(
    simulation,
    runCreate('a', {
      kind: 'program',
      program: { command: ['solve'], model: { url: 'http://127.0.0.1:1/v1' } },
      ...{ retry: { model: 0 }, timeout: { model: 60_000, agent: 2_000 } },
    }),
    someTasks(1),
  )
  await until('it runs', () => simulation.node.started.length === 1)
  const { sandbox = '', env } = simulation.node.started[0] ?? {}
  const phase = async () => {
    const { items } = await simulation.coordinator.listEpisodes('default', 'a', { limit: 1 })
    return items[0]?.phase
  }
  const begin = async () => {
    simulation.node.calls.tell({ sandbox, state: 'started' })
    await until('the model is called', async () => (await phase()) === 'model')
  }
  await begin()
  simulation.clock.advance(30_000)
  if (restarts) await simulation.restart()
  const end = async (failed?: string) => {
    simulation.node.calls.tell({ sandbox, state: 'ended', ...(failed ? { failed } : {}) })
    await until('the agent goes on', async () => (await phase()) === 'agent')
  }
  const call = () => begin().then(() => end())
  return { simulation, ended, env, phase, end, call }
}

test('the agent’s clock stands while it is asked', async () => {
  const { simulation, ended, env, end } = await calling()
  await using _ = simulation
  expect(env?.SANDLOT_MODEL_URL).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
  await end()
  ended.resolve({})
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'graded', phases: { modelMs: 30_000 } })
  expect(row?.phases.agentMs).toBeLessThan(2_000)
})

test('a call that failed last is model_error, whatever the program made of it', async () => {
  const { simulation, ended, end } = await calling()
  await using _ = simulation
  await end('the model answered 503')
  ended.resolve({})
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'model_error', reward: null, valid: false })
  expect(row?.error).toBe('the model answered 503')
})

test('a call that broke off with the daemon is model_error, and no zero', async () => {
  const { simulation, ended, phase } = await calling(true)
  await using _ = simulation
  await until('the agent goes on', async () => (await phase()) === 'agent')
  ended.resolve({ exitCode: 1 })
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'model_error', reward: null, valid: false })
  expect(row?.error).toContain('broke off')
})

test('where one after it had an answer, the agent has lost nothing', async () => {
  const { simulation, ended, phase, call } = await calling(true)
  await using _ = simulation
  await until('the agent goes on', async () => (await phase()) === 'agent')
  await call()
  ended.resolve({})
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', attempt: 1 }])
})

test.each([1, 2])('a call that failed last has failed after %i restarts', async (restarts) => {
  const { simulation, ended, end } = await calling()
  await using _ = simulation
  await end('the model answered 503')
  for (let n = 0; n < restarts; n++) {
    await until('all is on disk', () => simulation.isIdle)
    await simulation.restart()
  }
  ended.resolve({ exitCode: 1 })
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'model_error', error: 'the model answered 503' })
})
