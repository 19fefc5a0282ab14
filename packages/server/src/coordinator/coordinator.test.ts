import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, openSqliteEngine } from '@sandlot/engine'
import type { RunCreate } from '@sandlot/protocol'
import { afterEach, describe, expect, test } from 'vitest'
import { Coordinator } from './coordinator.ts'
import { createManualClock } from './simulated/clock.ts'
import { SimulatedNode, type SimulatedNodeOptions } from './simulated/node.ts'
import { until } from './simulated/settle.ts'
import { startSimulatedWorker } from './simulated/worker.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function setUp(nodeOptions: SimulatedNodeOptions = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'coordinator-'))
  cleanups.push(() => rm(directory, { recursive: true }))
  const engine: Engine = await openSqliteEngine({ directory })
  cleanups.push(async () => engine[Symbol.asyncDispose]())
  const clock = createManualClock()
  const node = new SimulatedNode(nodeOptions)
  const warnings: string[] = []
  const coordinator = new Coordinator({
    ...{ engine, node, clock },
    imageDigest: async (id) => (id === 'im_none' ? undefined : `sha256:${id}`),
    warn: (message, error) => warnings.push(`${message}: ${String(error)}`),
  })
  cleanups.push(async () => coordinator[Symbol.asyncDispose]())
  await coordinator.recover()
  return { engine, clock, node, coordinator, warnings }
}

function spec(name: string, more: Partial<RunCreate> = {}): RunCreate {
  return { name, kind: 'worker', from: 'im_a', concurrency: 4, ...more }
}

function tasks(count: number, from = 0) {
  return Array.from({ length: count }, (_, i) => ({
    key: `t${from + i}`,
    json: `{"n":${from + i}}`,
  }))
}

describe('a run', () => {
  test('gives one result per task and leaves nothing', async () => {
    const { coordinator, node, warnings } = await setUp()
    await coordinator.createRun('default', spec('a'))
    expect(await coordinator.putTasks('default', 'a', tasks(10))).toEqual({ added: 10, known: 0 })
    await coordinator.closeRun('default', 'a')
    await startSimulatedWorker(coordinator, {
      run: 'a',
      work: ({ taskJson }) => ({ kind: 'returned', reward: JSON.parse(taskJson ?? '').n }),
    })
    await until('the run is over', async () => {
      return (await coordinator.getRun('default', 'a')).state === 'finished'
    })
    const page = await coordinator.getResults('default', 'a', {})
    expect(page.rows.map((row) => [row.key, row.outcome, row.reward]).sort()).toEqual(
      tasks(10).map(({ key }, i) => [key, 'graded', i]),
    )
    expect(page.done).toBe(true)
    await until('nothing lives', () => node.living.size === 0)
    expect(warnings).toEqual([])
  })
})
