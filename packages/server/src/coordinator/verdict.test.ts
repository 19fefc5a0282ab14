import type { RewardSource } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { NodeExecEnd } from '../node/port.ts'
import { readVerdict } from './verdict.ts'

const ended: NodeExecEnd = {
  ...{ exec: 'ex_a', exitCode: 0, signal: null, timedOut: false, killed: false, durationMs: 1 },
  ...{ stdout: new Uint8Array(), stderr: Buffer.from('as it said'), left: 0, limits: [] },
  ...{ stdoutTotalBytes: 0, stdoutDroppedBytes: 0, stderrTotalBytes: 0, stderrDroppedBytes: 0 },
}

function verdict(source: RewardSource, end: Partial<NodeExecEnd>, files: Record<string, string>) {
  const read = async (path: string) => {
    const text = files[path]
    return text === undefined ? undefined : Buffer.from(text)
  }
  return readVerdict(source, { ...ended, ...end }, { who: 'the command', read })
}

const printed = (text: string) => verdict({ from: 'stdout' }, { stdout: Buffer.from(text) }, {})
const written = (text: string) => verdict({ from: 'file', paths: ['/r'] }, {}, { '/r': text })

test.each([
  [0, 1],
  [1, 0],
  [125, 0],
])('exit %i gives %i', async (exitCode, reward) => {
  expect(await verdict({ from: 'exit' }, { exitCode }, {})).toEqual({ kind: 'given', reward })
})

test.each([
  ['1', { reward: 1 }],
  ['-0.5\n', { reward: -0.5 }],
  ['{"reward": 0.25}', { reward: 0.25 }],
  ['{"rewards": {"a": 1, "b": 0}}', { rewards: { a: 1, b: 0 } }],
  ['{"reward": 1, "rewards": {"a": 1}}', { reward: 1, rewards: { a: 1 } }],
  ['{"reward": 1, "style": 0.5}', { reward: 1, rewards: { reward: 1, style: 0.5 } }],
  ['{"style": 0.5}', { rewards: { style: 0.5 } }],
])('%s is a verdict, printed or in a file', async (text, given) => {
  expect(await printed(text)).toEqual({ kind: 'given', ...given })
  expect(await written(text)).toEqual({ kind: 'given', ...given })
})

test.each(['', 'ok', 'NaN', '"1"', 'true', 'null', '[1]', '{}', '{"reward": "1"}', '1e999'])(
  '%s is none',
  async (text) => {
    expect(await printed(text)).toMatchObject({ kind: 'none' })
    expect(await written(text)).toMatchObject({ kind: 'none' })
  },
)

test.each([
  '{"reward": null}',
  '{"rewards": {"a": null}}',
  '{"rewards": {}}',
  '{"rewards": 1, "reward": "x"}',
])('%s is none, and the cause says where', async (text) => {
  expect(await printed(text)).toMatchObject({
    kind: 'none',
    cause: expect.stringMatching(/^what the command printed/),
  })
  expect(await written(text)).toMatchObject({ kind: 'none', cause: expect.stringMatching(/^\/r/) })
})

test('one line of what was printed is the verdict; of two nobody knows which', async () => {
  const line = '{"reward": 1}'
  expect(await printed(`collected 3 items\n${line}\n1 passed`)).toEqual({
    kind: 'given',
    reward: 1,
  })
  expect(await printed(`${line}\n${line}`)).toMatchObject({
    kind: 'none',
    cause: expect.stringMatching(/2 verdicts/),
  })
  expect(await printed('1\n0')).toMatchObject({
    kind: 'none',
    cause: expect.stringMatching(/no verdict as JSON/),
  })
})

test('of what was not kept nobody knows what it said', async () => {
  const end = { stdout: Buffer.from('{"reward": 1}'), stdoutDroppedBytes: 1, stdoutTotalBytes: 14 }
  expect(await verdict({ from: 'stdout' }, end, {})).toMatchObject({ kind: 'none' })
})

test.each([
  ['1.', 1],
  ['.5', 0.5],
  ['+1e-1', 0.1],
])('a file may say %s as other programs write numbers', async (text, reward) => {
  expect(await written(text)).toEqual({ kind: 'given', reward })
})

test('the first file that is there counts', async () => {
  const source: RewardSource = { from: 'file', paths: ['/a', '/b'] }
  expect(await verdict(source, {}, { '/b': '1' })).toEqual({ kind: 'given', reward: 1 })
  expect(await verdict(source, {}, { '/a': '0', '/b': '1' })).toEqual({ kind: 'given', reward: 0 })
  expect(await verdict(source, {}, {})).toEqual({
    kind: 'none',
    cause: 'the command left no /a nor /b, and exited with 0: as it said',
  })
})

test('tests that fail exit with 1, and their verdict is in the file all the same', async () => {
  const source: RewardSource = { from: 'file', paths: ['/r'] }
  expect(await verdict(source, { exitCode: 1 }, { '/r': '0' })).toEqual({
    kind: 'given',
    reward: 0,
  })
})

test.each([{ exitCode: 126 }, { exitCode: 127 }, { exitCode: null, signal: 9 }])(
  'a command that ended with %j has given no verdict, wherever it would be',
  async (end) => {
    for (const from of ['exit', 'stdout'] as const) {
      const said = { ...end, stdout: Buffer.from('1') }
      expect(await verdict({ from }, said, {})).toMatchObject({ kind: 'none' })
    }
    const file: RewardSource = { from: 'file', paths: ['/r'] }
    expect(await verdict(file, end, { '/r': '1' })).toMatchObject({ kind: 'none' })
  },
)
