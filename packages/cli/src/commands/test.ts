/** `sandlot test`: types, lint, the Rust tests and the whole suite, counted in one last line. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { cacheDirectory, nativeDirectory, repository } from '../config.ts'
import { note, printLine } from '../output/terminal.ts'
import { ensureMachine, type Machine } from '../setup/machine.ts'
import { findProgram, runProgram } from '../setup/program.ts'

const STEP_TIMEOUT_MS = 60 * 60_000

interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** Runs every check and prints `N passed, N failed, N skipped` last. Returns the exit code. */
export async function testCommand(filters: readonly string[]): Promise<number> {
  const machine = await ensureMachine(note)
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  if (filters.length === 0) {
    add(counts, await check('types', ['node_modules/typescript/bin/tsc', '--noEmit', '-p', '.']))
    add(
      counts,
      await check('format, lint and import ladder', [
        'node_modules/@biomejs/biome/bin/biome',
        'ci',
        '.',
      ]),
    )
    add(counts, await cargoTests())
  }
  add(counts, await vitest(filters, programs(machine)))
  printLine(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1
}

/** Where the tests find what was brought. */
function programs({ runsc, helper, agent }: Machine): Record<string, string> {
  return { SANDLOT_RUNSC: runsc, SANDLOT_HELPER: helper, SANDLOT_AGENT: agent }
}

function add(counts: Counts, more: Counts): void {
  counts.passed += more.passed
  counts.failed += more.failed
  counts.skipped += more.skipped
}

/** A whole tool that passes or fails counts as one test. */
async function check(name: string, argv: readonly string[]): Promise<Counts> {
  const end = await runProgram(execPath, argv, { cwd: repository, timeoutMs: STEP_TIMEOUT_MS })
  printLine(`${end.ok ? 'ok' : 'FAILED'}: ${name}`)
  if (!end.ok) printLine(end.output)
  return { passed: end.ok ? 1 : 0, failed: end.ok ? 0 : 1, skipped: 0 }
}

async function cargoTests(): Promise<Counts> {
  const cargo = (await findProgram('cargo')) ?? 'cargo'
  const end = await runProgram(cargo, ['test', '--locked', '--workspace', '--quiet'], {
    cwd: nativeDirectory,
    timeoutMs: STEP_TIMEOUT_MS,
  })
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const match of end.output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)) {
    add(counts, { passed: Number(match[1]), failed: Number(match[2]), skipped: Number(match[3]) })
  }
  if (!end.ok && counts.failed === 0) counts.failed = 1
  printLine(
    `${end.ok ? 'ok' : 'FAILED'}: Rust tests (${counts.passed} passed, ${counts.failed} failed)`,
  )
  if (!end.ok) printLine(end.output)
  return counts
}

async function vitest(filters: readonly string[], env: Record<string, string>): Promise<Counts> {
  const report = join(cacheDirectory, `vitest-${process.pid}.json`)
  const argv = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ]
  const end = await runProgram(execPath, [...argv, ...filters], {
    cwd: repository,
    env,
    timeoutMs: STEP_TIMEOUT_MS,
    onLine: printLine,
  })
  const counts = await readCounts(report)
  await rm(report, { force: true })
  // A file that could not be loaded, or a leak found after the last test, fails the run without a failed test.
  if (!end.ok && counts.failed === 0) counts.failed = 1
  return counts
}

async function readCounts(report: string): Promise<Counts> {
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(
      await readFile(report, 'utf8'),
    )
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }
  } catch {
    return { passed: 0, failed: 1, skipped: 0 }
  }
}
