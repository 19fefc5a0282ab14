import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ExecSpec } from './guest.ts'
import { GUEST_REVISION, TERMINAL_REVISION } from './revision.ts'
import { PipePair } from './testing/pipe-pair.ts'
import type { AgentScript } from './testing/scripted-agent.ts'

const SPEC: ExecSpec = {
  world: 'main',
  exec: 'ex_1',
  argv: ['sh'],
  env: [],
  cwd: '/',
  stdin: true,
  mode: 'stream',
  terminal: { columns: 80, rows: 24 },
}

let pipes: PipePair

beforeEach(() => {
  pipes = new PipePair()
})
afterEach(() => pipes[Symbol.asyncDispose]())

/** A guest whose agent says that it is of a revision. */
async function pair(script: AgentScript = {}, revision = GUEST_REVISION) {
  const agent = pipes.agent(script)
  agent.hello = { ...agent.hello, agent: `sandlot-agent 0.1.0 (revision ${revision})` }
  return { agent, guest: await pipes.attach() }
}

test('a terminal is asked for with its size, and resized by its command', async () => {
  const { guest, agent } = await pair({
    'exec.start': (stream) => stream.fail({ code: 'cancelled', message: 'enough' }),
    'exec.resize': (stream) => stream.result({}),
  })
  await expect(guest.exec.start(SPEC).result).rejects.toMatchObject({ code: 'cancelled' })
  await guest.exec.resize('ex_1', { columns: 132, rows: 43 })
  expect(agent.requests).toMatchObject([
    { op: 'exec.start', stdin: true, mode: 'stream', columns: 80, rows: 24 },
    { op: 'exec.resize', exec: 'ex_1', columns: 132, rows: 43 },
  ])
})

test('what a terminal can not be is refused before it is asked for', async () => {
  const { guest, agent } = await pair()
  for (const spec of [
    { ...SPEC, stdin: false },
    { ...SPEC, mode: 'buffered' as const },
  ]) {
    await expect(guest.exec.start(spec).result).rejects.toMatchObject({ code: 'invalid' })
  }
  expect(agent.requests).toEqual([])
})

test('an agent from before there were terminals is asked for none', async () => {
  const script: AgentScript = {
    'exec.resize': (stream) => stream.fail({ code: 'unsupported', message: 'no such request' }),
  }
  const { guest, agent } = await pair(script, TERMINAL_REVISION - 1)
  const older = {
    code: 'unsupported',
    message: expect.stringMatching(
      /older version \(revision \d+, not \d+\), so start the sandbox anew/,
    ),
  }
  await expect(guest.exec.start(SPEC).result).rejects.toMatchObject(older)
  await expect(guest.exec.resize('x', { columns: 1, rows: 1 })).rejects.toMatchObject(older)
  expect(agent.requests).toMatchObject([{ op: 'exec.resize' }])
})
