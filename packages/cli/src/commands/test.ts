/** `sandlot test`: types, lint, the Rust tests and the whole suite, counted in one last line. */
import { note, printLine } from '../output/terminal.ts'
import { ensureMachine, type Machine } from '../setup/machine.ts'
import { TEST_NEEDS } from '../setup/packages.ts'
import { NONE } from '../suite/counts.ts'
import { LINT, type Part, RUST, TYPES, vitestPart } from '../suite/parts.ts'
import { runParts } from '../suite/run-parts.ts'
import { EXIT_INTERRUPTED, interruption } from './interruption.ts'

/** Tests that are interrupted stop the sandboxes they started. */
const GRACE_MS = 90_000

/** Runs every check, or with filters only the test files that they name. The last line is `N passed, N failed, N skipped`. */
export async function testCommand(filters: readonly string[]): Promise<number> {
  using interrupted = interruption({ graceMs: GRACE_MS })
  const { signal } = interrupted
  const env: Record<string, string> = {}
  const parts: Part[] = [
    // A machine that can't be set up is a failure, and no reason to check nothing else.
    {
      name: 'setup',
      async run() {
        const machine = await ensureMachine(note, { signal, needs: TEST_NEEDS })
        Object.assign(env, programs(machine))
        return NONE
      },
    },
    ...(filters.length === 0 ? [TYPES, LINT, RUST] : []),
    vitestPart('units', filters, env),
    vitestPart('sandboxes', filters, env),
  ]
  const { passed, failed } = await runParts(parts, { signal, print: printLine })
  if (signal.aborted) return EXIT_INTERRUPTED
  return failed === 0 && passed > 0 ? 0 : 1
}

/** Where the tests find what was brought. */
function programs({ runsc, helper, agent }: Machine): Record<string, string> {
  return { SANDLOT_RUNSC: runsc, SANDLOT_HELPER: helper, SANDLOT_AGENT: agent }
}
