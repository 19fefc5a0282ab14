/** Ctrl-C and SIGTERM as an abort signal; a second one ends the process at once. */
import { exit } from 'node:process'

export interface Interruption extends Disposable {
  readonly signal: AbortSignal
}

export const EXIT_INTERRUPTED = 130

/** Somebody asked the command to stop: no failure of anything. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  constructor() {
    super('interrupted')
  }
}

/** From here to its end the process is not ended by the first signal; whoever waits is. */
export function interruption(): Interruption {
  const controller = new AbortController()
  const stop = () => {
    if (controller.signal.aborted) exit(EXIT_INTERRUPTED)
    controller.abort(new Interrupted())
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
