/** Turns whatever was thrown into an exit code, a message and the next command to type. */
import { type ErrorCode, SandlotError } from '@sandlot/protocol'
import { CommanderError } from 'commander'
import { EXIT_INTERRUPTED, Interrupted } from '../commands/interruption.ts'
import { Failure, Mistake } from '../failure.ts'
import { hintFor } from './hints.ts'
import { inOptions } from './in-options.ts'
import { printFailure } from './terminal.ts'

const EXIT_FAILED = 1
const EXIT_MISTAKE = 2
/** EX_SOFTWARE of sysexits.h. */
const EXIT_FAULT = 70

/** Errors whose messages name what was sent by its place there. */
const NAMES_FIELDS: ReadonlySet<ErrorCode> = new Set(['invalid_request', 'run_differs'] as const)

/**
 * Prints the failure; returns the exit code: 1 for what a person can mend, 2 for the caller's mistake, 130 for an interruption,
 * 70 for a fault of ours.
 */
export function reportFailure(thrown: unknown): number {
  // What went wrong first counts, not what went wrong while it was cleaned up.
  if (thrown instanceof SuppressedError) return reportFailure(thrown.suppressed)
  if (thrown instanceof Interrupted) return EXIT_INTERRUPTED
  // Commander has said it.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : EXIT_MISTAKE
  if (thrown instanceof Failure) {
    printFailure(thrown.message, thrown.hint)
    return thrown instanceof Mistake ? EXIT_MISTAKE : EXIT_FAILED
  }
  if (thrown instanceof SandlotError) {
    const { code, message } = thrown
    const said = NAMES_FIELDS.has(code) ? inOptions(message) : message
    printFailure(`${said} (${code})`, hintFor(thrown))
    return thrown.fault === 'caller' ? EXIT_MISTAKE : EXIT_FAILED
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  printFailure(
    error.stack ?? error.message,
    'this is a fault of sandlot itself: please report it with these lines',
  )
  return EXIT_FAULT
}
