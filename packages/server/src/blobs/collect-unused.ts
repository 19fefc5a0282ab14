import type { Clock, Engine } from '@sandlot/engine'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'

/**
 * Removes contents that nothing keeps now and then, until disposed: those of images that were built and of runs that were deleted. What
 * was put or asked for lately stays, as it may be about to be used.
 */
export function collectUnused(
  { blobs }: Pick<Engine, 'blobs'>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): AsyncDisposable {
  const closing = new AbortController()
  let collecting = Promise.resolve()
  let cancel = clock.after(SERVER_LIMITS.blobsEveryMs, look)
  function look(): void {
    collecting = collect().finally(() => {
      if (!closing.signal.aborted) cancel = clock.after(SERVER_LIMITS.blobsEveryMs, look)
    })
  }
  async function collect(): Promise<void> {
    try {
      const { signal } = closing
      const found = await blobs.collect({ graceMs: SERVER_LIMITS.blobGraceMs, signal })
      if (found.blobs > 0) log.info(found, 'contents that nothing keeps are removed')
    } catch (error) {
      if (!closing.signal.aborted) log.warn({ err: error }, 'unused contents could not be removed')
    }
  }
  return {
    [Symbol.asyncDispose]: async () => {
      closing.abort()
      cancel()
      await collecting
    },
  }
}
