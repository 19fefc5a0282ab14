import type { Clock, Digest, Engine } from '@sandlot/engine'
import type { ImageStore } from '@sandlot/runtime'
import type { Logger } from 'pino'
import type { Holdings } from '../holdings/holdings.ts'
import { SERVER_LIMITS } from '../limits.ts'

/**
 * Removes contents that nothing keeps now and then, until disposed: those of images that were built and of runs that were deleted. What
 * was put or asked for lately stays, as it may be about to be used.
 */
export function collectUnused(
  { blobs }: Pick<Engine, 'blobs'>,
  { holdings, images }: { readonly holdings: Holdings; readonly images: ImageStore },
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
      const isThere = async (digest: string) => (await blobs.has(digest as Digest)) !== undefined
      await holdings.sweep('blob', isThere, signal)
      const isImage = async (id: string) => (await images.find(id)) !== undefined
      await holdings.sweep('image', isImage, signal)
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
