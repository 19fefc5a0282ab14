/** Ctrl-C and SIGTERM as an abort signal; a second one ends the process at once. */
import { exit } from 'node:process'
import { note } from '../output/terminal.ts'

export interface Interruption extends Disposable {
  readonly signal: AbortSignal
}

export interface InterruptionOptions {
  /** How long cleaning up may take before the process ends without it. Default 10 seconds. */
  readonly graceMs?: number
}

export const EXIT_INTERRUPTED = 130
const GRACE_MS = 10_000

/** Somebody asked the command to stop: no failure of anything. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  constructor() {
    super('interrupted')
  }
}

/**
 * From here to its end the process is not ended by the first signal; whoever waits is. What a command has started for itself ends
 * with the process in any case: a daemon that hangs keeps nobody waiting.
 */
export function interruption({ graceMs = GRACE_MS }: InterruptionOptions = {}): Interruption {
  const controller = new AbortController()
  const stop = () => {
    if (controller.signal.aborted) exit(EXIT_INTERRUPTED)
    controller.abort(new Interrupted())
    setTimeout(() => {
      note(`not cleaned up after ${graceMs / 1000} s: ending without it`)
      exit(EXIT_INTERRUPTED)
    }, graceMs).unref()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
    },
  }
}
