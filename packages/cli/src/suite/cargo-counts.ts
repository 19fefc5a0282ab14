import { addCounts, type Counts } from './counts.ts'

/** The sum of what `cargo test` says of each of its programs; `ignored` ones are skipped. */
export function cargoCounts(output: string): Counts {
  const results = output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)
  return addCounts(
    [...results].map(([, passed, failed, ignored]) => ({
      passed: Number(passed),
      failed: Number(failed),
      skipped: Number(ignored),
    })),
  )
}
