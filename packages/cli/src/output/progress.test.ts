import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { describeProgress, startProgressLine } from './progress.ts'

const NO_FAILURES = new Map<string, number>()

test.each([
  [
    {
      done: 120,
      running: 8,
      queued: 364,
      failures: new Map([['sandbox_oom', 3]]),
      elapsedMs: 30_000,
    },
    '120/492 done, 8 running, 364 queued, 4.0/s, sandbox_oom 3, 1m 33s left',
  ],
  [
    { done: 0, running: 2, queued: 8, failures: NO_FAILURES, elapsedMs: 5_000 },
    '0/10 done, 2 running, 8 queued, 0.0/s',
  ],
  [
    { done: 0, running: 0, queued: 10, failures: NO_FAILURES, elapsedMs: 0 },
    '0/10 done, 0 running, 10 queued, 0.0/s',
  ],
  [
    { done: 10, running: 0, queued: 0, failures: NO_FAILURES, elapsedMs: 5_000 },
    '10/10 done, 0 running, 0 queued, 2.0/s',
  ],
  [
    { done: 1, running: 9, queued: 0, failures: NO_FAILURES, elapsedMs: 4_000 },
    '1/10 done, 9 running, 0 queued, 0.3/s, 36s left',
  ],
  [
    { done: 1, running: 0, queued: 1_000, failures: NO_FAILURES, elapsedMs: 10_000 },
    '1/1001 done, 0 running, 1000 queued, 0.1/s, 2h 46m left',
  ],
])('%o', (counts, text) => {
  expect(describeProgress(counts)).toBe(text)
})

function setup(redraws: boolean) {
  const stream = Object.assign(new PassThrough(), { columns: 80, rows: 24, isTTY: redraws })
  let nowMs = 0
  const line = startProgressLine({ stream, redraws, now: () => nowMs })
  return {
    line,
    pass: (ms: number) => {
      nowMs += ms
    },
    text: () => String(stream.read() ?? ''),
  }
}

test('where nothing can be drawn again, a line comes every five seconds and at the end', () => {
  const { line, pass, text } = setup(false)
  line.update('1')
  pass(4_999)
  line.update('2')
  pass(1)
  line.update('3')
  line.update('4')
  expect(text()).toBe('1\n3\n')
  line[Symbol.dispose]()
  expect(text()).toBe('4\n')
})

test('the same line does not come twice', () => {
  const { line, pass, text } = setup(false)
  line.update('1')
  pass(5_000)
  line.update('1')
  line[Symbol.dispose]()
  expect(text()).toBe('1\n')
})

test('nothing is drawn where nothing happened', () => {
  const { line, text } = setup(true)
  line[Symbol.dispose]()
  expect(stripVTControlCharacters(text())).toBe('')
})

test('on a terminal the line is drawn over itself', () => {
  const { line, pass, text } = setup(true)
  line.update('one')
  pass(100)
  line.update('and')
  line.update('six')
  line[Symbol.dispose]()
  const drawn = text()
  expect(drawn).toContain('\u001b[')
  expect(stripVTControlCharacters(drawn).split(/\s+/).join('')).toMatch(/one.*and.*six$/)
})
