/** What the suite is made of. Every part ends in counts, whatever happens to its tool. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { repository } from '../config.ts'
import { Failure } from '../failure.ts'
import { note, printLine } from '../output/terminal.ts'
import { runCargo } from '../setup/cargo.ts'
import { type ProgramEnd, runProgram } from '../setup/program.ts'
import { cargoCounts } from './cargo-counts.ts'
import { type Counts, NONE, ONE_FAILED, ONE_PASSED, settleCounts } from './counts.ts'
import { parseVitestReport } from './vitest-report.ts'

const TIMEOUT_MS = 60 * 60_000
/** Tests that are interrupted have this long to stop what they started. */
const CLEAN_UP_MS = 60_000

export interface Part {
  readonly name: string
  readonly run: (signal: AbortSignal) => Promise<Counts>
}

export const TYPES = tool('types', ['node_modules/typescript/bin/tsc', '--noEmit', '-p', '.'])

export const LINT = tool('format, lint, import ladder', [
  'node_modules/@biomejs/biome/bin/biome',
  'ci',
  '.',
])

export const RUST: Part = {
  name: 'Rust',
  async run(signal) {
    const argv = ['test', '--locked', '--workspace', '--quiet']
    const end = await runCargo(argv, { timeoutMs: TIMEOUT_MS, signal })
    if (!end) throw new Failure('cargo is not installed', 'install Rust from https://rustup.rs')
    printOutputOfFailed(end)
    return settleCounts(cargoCounts(end.output), end.ok)
  },
}

/** One of the projects of vitest.config.ts, in an environment that names the programs under test. */
export function vitestPart(
  project: 'units' | 'sandboxes',
  filters: readonly string[],
  env: Readonly<Record<string, string>>,
): Part {
  return { name: project, run: (signal) => runVitest(project, filters, { env, signal }) }
}

async function runVitest(
  project: string,
  filters: readonly string[],
  { env, signal }: { readonly env: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<Counts> {
  const report = join(repository, `node_modules/.vitest-${project}-${process.pid}.json`)
  const argv = [
    'node_modules/vitest/vitest.mjs',
    'run',
    `--project=${project}`,
    '--passWithNoTests',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ]
  try {
    const end = await runProgram(execPath, [...argv, ...filters], {
      cwd: repository,
      env,
      timeoutMs: TIMEOUT_MS,
      signal,
      endBy: { signal: 'SIGINT', graceMs: CLEAN_UP_MS },
      onLine: printLine,
    })
    const { counts, skipped } = parseVitestReport(await readFile(report, 'utf8'))
    for (const name of skipped) note(`skipped: ${name}`)
    return settleCounts(counts, end.ok)
  } catch (error) {
    signal.throwIfAborted()
    note(`vitest wrote no report: ${(error as Error).message}`)
    return ONE_FAILED
  } finally {
    await rm(report, { force: true })
  }
}

function tool(name: string, argv: readonly string[]): Part {
  return {
    name,
    async run(signal) {
      const options = { cwd: repository, timeoutMs: TIMEOUT_MS, signal }
      const end = await runProgram(execPath, argv, options)
      printOutputOfFailed(end)
      return settleCounts(end.ok ? ONE_PASSED : NONE, end.ok)
    },
  }
}

function printOutputOfFailed({ ok, output }: ProgramEnd): void {
  if (!ok) printLine(output.trimEnd())
}
