import { expect, test } from 'vitest'
import { Failure } from '../failure.ts'
import { cargoCounts } from './cargo-counts.ts'
import { addCounts, formatCounts, NONE, settleCounts } from './counts.ts'
import type { Part } from './parts.ts'
import { runParts } from './run-parts.ts'
import { parseVitestReport } from './vitest-report.ts'

test('counts are added', () => {
  const counts = { passed: 2, failed: 1, skipped: 3 }
  expect(addCounts([counts, NONE, counts])).toEqual({ passed: 4, failed: 2, skipped: 6 })
  expect(addCounts([])).toEqual(NONE)
})

test('a tool that failed has a failure, whatever it counted', () => {
  expect(settleCounts({ passed: 9, failed: 0, skipped: 0 }, false).failed).toBe(1)
  expect(settleCounts({ passed: 9, failed: 3, skipped: 0 }, false).failed).toBe(3)
  expect(settleCounts(NONE, true)).toEqual(NONE)
})

test('cargo’s programs are summed, ignored ones are skipped', () => {
  const output = `
running 31 tests
test result: ok. 30 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
running 0 tests
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s`
  expect(cargoCounts(output)).toEqual({ passed: 34, failed: 2, skipped: 1 })
  expect(cargoCounts('error: could not compile')).toEqual(NONE)
})

test('vitest’s report is read: files that can’t be loaded fail, skipped ones are named', () => {
  const report = {
    numPassedTests: 7,
    numFailedTests: 1,
    numPendingTests: 1,
    numTodoTests: 1,
    success: false,
    testResults: [
      { status: 'failed', assertionResults: [] },
      {
        status: 'failed',
        assertionResults: [
          { status: 'passed', fullName: 'is right' },
          { status: 'failed', fullName: 'is wrong' },
          { status: 'skipped', fullName: 'needs gVisor' },
          { status: 'todo', fullName: 'comes later' },
        ],
      },
    ],
  }
  expect(parseVitestReport(JSON.stringify(report))).toEqual({
    counts: { passed: 7, failed: 2, skipped: 2 },
    skipped: ['needs gVisor', 'comes later'],
  })
  expect(() => parseVitestReport('')).toThrow()
  expect(() => parseVitestReport('{}')).toThrow()
})

function clock(): () => number {
  let nowMs = 0
  return () => {
    nowMs += 1_500
    return nowMs
  }
}

async function run(parts: readonly Part[], signal = new AbortController().signal) {
  const lines: string[] = []
  const counts = await runParts(parts, { signal, print: (line) => lines.push(line), now: clock() })
  return { counts, lines }
}

function part(name: string, passed: number, failed: number, skipped: number): Part {
  return { name, run: async () => ({ passed, failed, skipped }) }
}

test('each part has its line and its time, the sum comes last', async () => {
  const { counts, lines } = await run([part('types', 1, 0, 0), part('units', 10, 2, 1)])
  expect(counts).toEqual({ passed: 11, failed: 2, skipped: 1 })
  expect(lines).toEqual([
    'ok: types (1 passed, 0 failed, 0 skipped, 1.5 s)',
    'FAILED: units (10 passed, 2 failed, 1 skipped, 1.5 s)',
    '11 passed, 2 failed, 1 skipped',
  ])
  expect(lines.at(-1)).toBe(formatCounts(counts))
})

test('a part that throws has failed, and the others go on', async () => {
  const broken: Part = {
    name: 'setup',
    run: async () => {
      throw new Failure('no cargo', 'install Rust')
    },
  }
  const { lines } = await run([broken, part('units', 3, 0, 0)])
  expect(lines).toEqual([
    'no cargo\nhint: install Rust',
    'FAILED: setup (0 passed, 1 failed, 0 skipped, 1.5 s)',
    'ok: units (3 passed, 0 failed, 0 skipped, 1.5 s)',
    '3 passed, 1 failed, 0 skipped',
  ])
})

test('an interruption fails the part that runs, begins no other, and the sum still comes last', async () => {
  const controller = new AbortController()
  const interrupted: Part = {
    name: 'units',
    run: async (signal) => {
      controller.abort(new Error('interrupted'))
      signal.throwIfAborted()
      return NONE
    },
  }
  const never: Part = { name: 'sandboxes', run: async () => expect.unreachable() }
  const { lines } = await run([part('types', 1, 0, 0), interrupted, never], controller.signal)
  expect(lines.at(-1)).toBe('1 passed, 1 failed, 0 skipped')
  expect(lines.join('\n')).not.toContain('sandboxes')
})
