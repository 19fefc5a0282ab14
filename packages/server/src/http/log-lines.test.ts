import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { type LoggedWait, logLines } from './log-lines.ts'

const linesOf = (run: (wait: LoggedWait) => Promise<string>) =>
  Array.fromAsync(
    logLines({
      signal: new AbortController().signal,
      run,
      done: (value) => ({ value }),
    }),
  )

test('news and details come as they were said, then how it ended', async () => {
  const lines = await linesOf(async ({ onLog, onDetail }) => {
    onLog('one')
    onDetail('two')
    onLog('three')
    return 'it'
  })
  expect(lines).toEqual([
    { kind: 'log', line: 'one' },
    { kind: 'detail', line: 'two' },
    { kind: 'log', line: 'three' },
    { kind: 'done', value: 'it' },
  ])
})

test('a failure is the last line, behind what a slow reader missed', async () => {
  const lines = await linesOf(async ({ onDetail }) => {
    for (let n = 0; n <= SERVER_LIMITS.buildLinesWaiting; n++) onDetail('x')
    throw new Error('no')
  })
  expect(lines.at(-2)).toEqual({ kind: 'log', line: '(1 lines were not read in time)' })
  expect(lines.at(-1)).toMatchObject({ kind: 'error', error: { code: 'internal' } })
})
