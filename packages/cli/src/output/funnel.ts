/** Turns whatever was thrown into an exit code, a message and the next command to type. */
import { SandlotError } from '@sandlot/protocol'
import { EXIT_INTERRUPTED, Interrupted } from '../commands/interruption.ts'
import { Failure } from '../failure.ts'
import { printFailure } from './terminal.ts'

/** Prints the failure; returns the exit code: 2 for the caller's mistake, 130 for an interruption, 70 for a fault of ours, 1 for the rest. */
export function reportFailure(thrown: unknown): number {
  if (thrown instanceof Interrupted) return EXIT_INTERRUPTED
  if (thrown instanceof Failure) {
    printFailure(thrown.message, thrown.hint)
    return 1
  }
  if (thrown instanceof SandlotError) {
    printFailure(`${thrown.message} (${thrown.code})`, thrown.hint)
    return thrown.fault === 'caller' ? 2 : 1
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  printFailure(
    error.stack ?? error.message,
    'this is a fault of sandlot itself: please report it with these lines',
  )
  return 70
}
