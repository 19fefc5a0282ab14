import type { RunCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { SimulatedNodeOptions } from '../simulated/node.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from '../simulated/setup.ts'

const AGENT_MS = 2_000

function program(reward: string): RunCreate {
  return runCreate('a', {
    kind: 'program',
    program: { command: ['solve'], reward: { from: 'file', paths: [reward] } },
    timeout: { agent: AGENT_MS },
  })
}

/** A node that reads a file only after its program's time is over. */
async function lateRead(text: string, run: RunCreate, waitMs = 1.5 * AGENT_MS) {
  const ready = Promise.withResolvers<void>()
  const reading = Promise.withResolvers<void>()
  const onRead: SimulatedNodeOptions['onRead'] = async () => {
    reading.resolve()
    await ready.promise
    return text
  }
  const simulation = await simulate({ onRead })
  await startRun(simulation, run, someTasks(1))
  await reading.promise
  let passedMs = 0
  await until('its time is over', () => {
    if (!simulation.isIdle) return false
    simulation.clock.advance(AGENT_MS / 10)
    passedMs += AGENT_MS / 10
    return passedMs > waitMs
  })
  ready.resolve()
  await until('it is over', async () => (await simulation.view('a')).counts.done === 1)
  return { simulation, rows: await overTime(simulation) }
}

test('one that ended in time has its verdict, also when it is read long after its stop', async () => {
  const { simulation, rows } = await lateRead('0.5', program('/r.txt'), AGENT_MS + 60_000)
  await using _ = simulation
  expect(rows).toMatchObject([{ outcome: 'graded', reward: 0.5, attempt: 1 }])
})

test.each([
  ['1', 'graded', 1],
  ['0.5', 'graded', 0.5],
  ['nonsense', 'episode_error', null],
])(
  'a command that ended in time has its verdict, however late it is read: %s',
  async (text, outcome, reward) => {
    const { simulation, rows } = await lateRead(text, program('/r.txt'))
    await using _ = simulation
    expect(rows).toMatchObject([{ outcome, reward, attempt: 1 }])
  },
)
