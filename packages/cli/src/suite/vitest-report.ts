import { z } from 'zod'
import type { Counts } from './counts.ts'

/** What vitest's JSON reporter writes, as far as it is read. */
const report = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string(), fullName: z.string() })),
    }),
  ),
})

export interface VitestReport {
  readonly counts: Counts
  /** Names of the skipped ones. */
  readonly skipped: readonly string[]
}

/** Throws for what is no report. */
export function parseVitestReport(text: string): VitestReport {
  const { testResults, ...numbers } = report.parse(JSON.parse(text))
  // One that can't be loaded has no tests that could fail.
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  return {
    counts: {
      passed: numbers.numPassedTests,
      failed: numbers.numFailedTests + broken.length,
      skipped: numbers.numPendingTests + numbers.numTodoTests,
    },
    skipped: testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => !['passed', 'failed'].includes(status))
      .map(({ fullName }) => fullName),
  }
}
